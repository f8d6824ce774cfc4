import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type Account, createRoom, type Json, mapConcurrently, register, sendText } from '../support/api.ts'
import { waitUntil } from '../support/wait.ts'
import { startService, TAKES_ALL, type TestService } from './service.ts'
import { as, makeGhost, openWorld, registration, type World } from './world.ts'

const HOUR_MS = 3_600_000
const LINES = Number(process.env.HEARTH_TEST_LINES ?? 600)

let service: TestService
let world: World
let person: Account
/** How far the server's clock is ahead of the machine's. */
let ahead = 0
const clock = { now: () => Date.now() + ahead }
const irc = registration('irc', { receive_ephemeral: true, 'org.matrix.msc3202': true })
beforeAll(async () => {
  service = await startService()
  world = await openWorld([{ ...irc, url: service.url }], {}, { clock })
  person = await register(world.api, 'person')
})
afterAll(async () => {
  await world.close()
  await service.close()
})
beforeEach(() => service.behave(TAKES_ALL))

const room = encodeURIComponent
const query = <Row extends object>(sql: string) => world.server.database.db.query<Row>(sql)
const call = (method: string, path: string, body?: unknown, token = person.token) =>
  world.api.call(method, path, { token, ...(body !== undefined && { body }) })
const texts = (roomId: string) =>
  service
    .events()
    .filter((event) => event.room_id === roomId && event.type === 'm.room.message')
    .map((event) => event.content.body)

async function bridged(name: string): Promise<{ roomId: string; ghost: string }> {
  const ghost = await makeGhost(world.api, irc, `_irc_${name}`)
  await call('PUT', as(ghost, '/devices/DEV'), {}, irc.as_token)
  const roomId = await createRoom(world.api, person.token, { preset: 'public_chat' })
  await call('POST', as(ghost, `/join/${room(roomId)}`), {}, irc.as_token)
  await service.until(`${ghost} in the room`, (event) => event.room_id === roomId && event.state_key === ghost)
  return { roomId, ghost }
}

interface QueueState {
  readonly failures: number
  readonly retry_at: number
  readonly body: string | null
}
async function queue(): Promise<QueueState> {
  return (await query<QueueState>('SELECT failures, retry_at, body FROM appservice_queue'))[0]!
}
const settled = () => waitUntil('all to be delivered', async () => (await queue())?.body === null)

/** All that was said in a room, in the order of its timeline. */
async function timeline(roomId: string): Promise<string[]> {
  const said: string[] = []
  for (let from = ''; ; ) {
    const page = await call('GET', `/rooms/${room(roomId)}/messages?dir=f&limit=1000${from}`)
    for (const { type, content } of page.chunk) if (type === 'm.room.message') said.push(content.body)
    if (page.end === undefined) return said
    from = `&from=${page.end}`
  }
}

describe('a service that is down for a week', () => {
  it('is tried ever more rarely and at least hourly, comes back to all in order, and leaves no rows', async () => {
    const { roomId, ghost } = await bridged('week')
    await settled()
    const heap = process.memoryUsage().heapUsed
    const tries = () => service.transactions().length
    service.behave(() => 503)
    const start = tries()
    await sendText(world.api, person.token, roomId, 'first', 'first')
    // Each pause is waited for by the clock, not by the test: twice as long as the last, up to an hour.
    for (let failures = 1; failures <= 15; failures++) {
      const state = await waitUntil(`try ${failures}`, async () => {
        const now = await queue()
        return now.failures >= failures && now
      })
      expect(state.failures).toBe(failures)
      const pause = state.retry_at - clock.now()
      const usual = Math.min(1_000 * 2 ** (failures - 1), HOUR_MS)
      expect(pause).toBeLessThanOrEqual(1.25 * usual)
      if (failures > 4) expect(pause).toBeGreaterThan(0.75 * usual - 5_000)
      ahead += Math.max(0, pause)
    }
    await waitUntil('the last of these tries', async () => (await queue()).failures === 16)
    expect(tries() - start).toBe(16)

    await mapConcurrently(Array.from({ length: LINES }), 8, async (_, n) => {
      const eventId = await sendText(world.api, person.token, roomId, `l${n}`, `line ${n}`)
      if (n % 20 !== 0) return
      await call('POST', `/rooms/${room(roomId)}/receipt/m.read/${room(eventId)}`, {})
      await call('PUT', `/sendToDevice/m.test/${n}`, { messages: { [ghost]: { DEV: { n } } } })
      await call('PUT', `/presence/${person.userId}/status`, { presence: 'online', status_msg: `${n}` })
    })
    await call('POST', `/rooms/${room(roomId)}/kick`, { user_id: ghost })
    await sendText(world.api, person.token, roomId, 'later', 'none of its business')
    // Of what is new, the messages and the newest of each other kind are rows; of the events, the transaction under way.
    const kinds = await waitUntil('the rows', async () => {
      const rows = await query<{ kind: string; n: number }>(
        'SELECT kind, count(*) AS n FROM appservice_news GROUP BY kind',
      )
      return rows.length === 3 && Object.fromEntries(rows.map(({ kind, n }) => [kind, n]))
    })
    expect(kinds).toEqual({ message: LINES / 20, receipt: 1, presence: 1 })
    const [size] = await query<{ bytes: number }>("SELECT pg_total_relation_size('appservice_queue') AS bytes")
    expect(size!.bytes).toBeLessThan(2_000_000)
    expect(process.memoryUsage().heapUsed - heap).toBeLessThan(256 * 2 ** 20)

    ahead += 7 * 24 * HOUR_MS
    // Its end, not its beginning: the pause after it is counted from there.
    await waitUntil('a try after the week', async () => (await queue()).failures > 16)
    service.behave(TAKES_ALL)
    ahead += 2 * HOUR_MS
    await service.until('its last event', (e) => e.room_id === roomId && e.content.membership === 'leave')
    expect(texts(roomId)).toEqual((await timeline(roomId)).filter((text) => text !== 'none of its business'))
    expect(new Set(texts(roomId)).size).toBe(LINES + 1)
    await waitUntil('the rows to be gone', async () => {
      const [row] = await query<{ n: number }>('SELECT count(*) AS n FROM appservice_news')
      return row!.n === 0 && (await queue()).body === null
    })
    const messages = new Map(service.transactions().map(({ path, body }) => [path, body.to_device ?? []]))
    const numbers = [...messages.values()].flat().map((message: Json) => message.content.n)
    expect(numbers.sort((a, b) => a - b)).toEqual(Array.from({ length: LINES / 20 }, (_, n) => n * 20))
    expect(await queue()).toMatchObject({ failures: 0, retry_at: 0 })
  }, 120_000)

  it('is not forgotten by a clock that is moved back', async () => {
    const { roomId } = await bridged('back')
    await settled()
    service.behave(() => 503)
    await sendText(world.api, person.token, roomId, '1', 'before')
    await waitUntil('a failure', async () => (await queue()).failures > 0)
    service.behave(TAKES_ALL)
    ahead -= 3 * 24 * HOUR_MS
    await service.until('what was said', (event) => event.content.body === 'before')
    await sendText(world.api, person.token, roomId, '2', 'after')
    await service.until('what was said then', (event) => event.content.body === 'after')
  })
})

describe('a service with old paths', () => {
  /** In their order; where several went one after the other, once: on a busy machine news may go in two transactions. */
  const pathsSince = (count: number) =>
    service
      .transactions()
      .slice(count)
      .map(({ path }) => path.replace(/\d+$/, ''))
      .filter((path, index, all) => path !== all[index - 1])
  const [MATRIX, PROTO, OLD] = ['/_matrix/app/v1/transactions/', '/_proto/app/v1/transactions/', '/transactions/']
  const isOld = ({ path }: { path: string }) => (path.startsWith('/_') ? 404 : ([200, {}] as const))

  it('is asked for the versioned ones again each hour, and stays with them once it has them', async () => {
    const { roomId } = await bridged('old')
    await settled()
    service.behave(isOld)
    const say = async (text: string) => {
      const count = service.transactions().length
      await sendText(world.api, person.token, roomId, text, text)
      await service.until(text, (event) => event.content.body === text)
      await settled()
      return pathsSince(count)
    }
    expect(await say('old: first')).toEqual([MATRIX, PROTO, OLD])
    ahead += HOUR_MS / 2
    expect(await say('old: within the hour')).toEqual([OLD])
    ahead += HOUR_MS / 2 + 1_000
    expect(await say('old: an hour later')).toEqual([MATRIX, PROTO, OLD])
    expect(await say('old: again')).toEqual([OLD])
    service.behave(TAKES_ALL)
    ahead += HOUR_MS + 1_000
    expect(await say('old: upgraded')).toEqual([MATRIX])
    expect(await say('old: from then on')).toEqual([MATRIX])
  })
})
