import { expect } from 'vitest'
import { ADMIN, registerBySecret } from '../admin/office.ts'
import { bodiesOf, setPusher, type TestGateway } from '../push/gateway.ts'
import { type Account, createRoom, type Json, join, mapConcurrently, sendText, syncPath } from '../support/api.ts'
import type { Neighbour } from '../support/neighbours.ts'
import { waitUntil } from '../support/wait.ts'

export interface WaveSize {
  readonly accounts: number
  readonly invitesEach: number
  readonly messagesEach: number
}

const enc = encodeURIComponent
const CROWDS = '/_hearth/admin/v1/crowds'
const BAIT = 'cheap coins'

/**
 * A wave of spam against `home`: accounts that invite everybody to rooms of their own and flood a room that is shared with `away`. Then one
 * operator ends it with three acts, and nothing of it is left to see, to push or to send.
 */
export async function endWave(
  home: Neighbour,
  away: Neighbour,
  gateway: TestGateway,
  size: WaveSize,
  clockNow: () => number,
): Promise<void> {
  const { api } = home
  const boss = await registerBySecret(api, 'boss', true)
  const victims = await mapConcurrently([...Array(10).keys()], 4, (n) => home.person(`victim${n}`))
  const [owner] = victims as [Account, ...Account[]]
  const far = await away.person('far')
  const square = await createRoom(api, owner.token, { preset: 'public_chat', name: 'Square' })
  for (const victim of victims.slice(1)) await join(api, victim.token, square)
  await away.api.call('POST', `/join/${enc(square)}?server_name=${enc(home.name)}`, { token: far.token, body: {} })
  await sendText(api, owner.token, square, 'before', 'good evening')

  const [, phoned] = victims as [Account, Account, ...Account[]]
  await setPusher(api, phoned, gateway, 'phone')

  const since = clockNow()
  const bots = await mapConcurrently([...Array(size.accounts).keys()], 4, (n) => home.person(`bot${n}x`))
  await mapConcurrently(bots, 4, async (bot, index) => {
    await join(api, bot.token, square)
    const lair = await createRoom(api, bot.token, { name: BAIT })
    for (let n = 0; n < size.invitesEach; n++) {
      const user_id = victims[(index + n) % victims.length]!.userId
      await api.request('POST', `/rooms/${enc(lair)}/invite`, { token: bot.token, body: { user_id } })
    }
    for (let n = 0; n < size.messagesEach; n++) await sendText(api, bot.token, square, `m${n}`, `${BAIT} ${n}`)
  })
  const invited = async (who: Account) => {
    const { rooms } = await api.call('GET', syncPath({}), { token: who.token })
    return Object.keys(rooms?.invite ?? {}).length
  }
  expect(await invited(owner)).toBeGreaterThan(0)
  // The phone rings, for some of it: most waits for its turn.
  await waitUntil('the phone', () => gateway.of('phone').length > 0, { timeoutMs: 60_000 })
  expect(JSON.stringify(gateway.of('phone'))).toMatch(new RegExp(`${BAIT}|m.room.member`))

  // Three acts of one operator.
  const crowd = { name: 'bot*x', registered_after: since }
  const act = (path: string, body: object) =>
    api.call('POST', `${CROWDS}/${path}`, { token: boss.token, body: { crowd, ...body } })
  expect((await act('restrain', { lock: true, shadow_ban: true })).total).toBe(size.accounts)
  expect((await act('redact', { redaction: { reason: 'spam' } })).total).toBe(size.accounts)
  expect((await act('quarantine', {})).total).toBe(size.accounts)

  const open = async () => {
    const path = `${ADMIN}/v1/scheduled_tasks?action_name=redact_all_events&job_status=active`
    return (await api.call('GET', path, { token: boss.token })).scheduled_tasks.length
  }
  await waitUntil('the end of all redactions', async () => (await open()) === 0, { timeoutMs: 600_000, everyMs: 200 })

  const seenBy = async (server: Neighbour, who: Account): Promise<string> => {
    let all = ''
    for (let from = ''; ; ) {
      const path = `/rooms/${enc(square)}/messages?dir=b&limit=1000${from && `&from=${enc(from)}`}`
      const page: Json = await server.api.call('GET', path, { token: who.token })
      all += JSON.stringify(page.chunk)
      if (page.end === undefined) return all
      from = page.end
    }
  }
  for (const victim of victims) expect(await invited(victim)).toBe(0)
  expect(await seenBy(home, owner)).not.toContain(BAIT)
  const first = await api.call('GET', syncPath({}), { token: owner.token })
  expect(JSON.stringify(first.rooms.join)).not.toContain(BAIT)
  const baits = async ({ server }: Neighbour): Promise<number> => {
    const text = `SELECT count(*)::int AS count FROM event WHERE type = 'm.room.message' AND json LIKE '%${BAIT}%'`
    return (await server.database.db.query<{ count: number }>(text))[0]!.count
  }
  await waitUntil('the other server', async () => (await baits(away)) === 0, { timeoutMs: 600_000, everyMs: 500 })
  expect(await seenBy(away, far)).not.toContain(BAIT)
  expect(await seenBy(away, far)).toContain('good evening')
  const waiting = await api.call('GET', `/notifications?limit=100`, { token: owner.token })
  expect(JSON.stringify(waiting.notifications)).not.toContain(BAIT)
  expect(await baits(home)).toBe(0)

  // What they try now goes nowhere.
  const tried = await api.request('PUT', `/rooms/${enc(square)}/send/m.room.message/late`, {
    token: bots[0]!.token,
    body: { msgtype: 'm.text', body: BAIT },
  })
  expect(tried.body.errcode).toBe('M_USER_LOCKED')
  // The phone is quiet, and the next thing it says is of somebody else.
  const before = gateway.requests.length
  await sendText(api, owner.token, square, 'after', 'good morning')
  await waitUntil('the next message', () => bodiesOf(gateway.of('phone')).includes('good morning'), {
    timeoutMs: 60_000,
  })
  const rung = gateway.requests.slice(before).map(({ notification }) => notification)
  expect(JSON.stringify(rung)).not.toContain(BAIT)
  expect(rung.filter(({ sender }) => sender?.startsWith('@bot'))).toEqual([])
  const { acts } = await api.call('GET', '/_hearth/admin/v1/acts?limit=10', { token: boss.token })
  const recorded = acts.filter(({ target }: Json) => target.includes('bot*x'))
  expect(recorded.map(({ act: name, outcome, actor }: Json) => [name, outcome, actor])).toEqual([
    [`POST ${CROWDS}/quarantine`, 'done', boss.userId],
    [`POST ${CROWDS}/redact`, 'done', boss.userId],
    [`POST ${CROWDS}/restrain`, 'done', boss.userId],
  ])
}
