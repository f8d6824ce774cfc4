import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  type Account,
  type Api,
  createRoom,
  type Json,
  join,
  openApi,
  register,
  sendText,
  syncPath,
} from '../../support/api.ts'
import { openNeighbourhood } from '../../support/neighbours.ts'
import { startServer, type TestServer } from '../../support/server.ts'
import { waitUntil } from '../../support/wait.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

let server: TestServer
let api: Api
let alice: Account
let bob: Account
let ahead = 0
let sent = 0

const enc = encodeURIComponent
const V1 = '/_matrix/client/v1'
const now = () => Date.now() + ahead
const inRoom = (room: string, rest: string) => `/rooms/${enc(room)}${rest}`
const say = (room: string, text: string, who = alice) => sendText(api, who.token, room, `t${sent++}`, text)
const textsIn = (events: readonly Json[]) => events.flatMap(({ content }) => content.body ?? [])
const firstSync = async (room: string, who = bob) =>
  (await api.call('GET', syncPath({}), { token: who.token })).rooms.join[room]
const paged = async (room: string, who = bob) =>
  textsIn((await api.call('GET', inRoom(room, '/messages?dir=b&limit=100'), { token: who.token })).chunk)
const stored = async (room: string) => {
  const rows = await server.database.db.query<{ json: string }>(
    'SELECT e.json FROM event e JOIN room USING (room_nid) WHERE room_id = $1',
    [room],
  )
  return rows.map(({ json }) => json).join()
}
const purges = () => server.database.db.query('SELECT 1 FROM history_purge')

async function shared(retention?: object): Promise<string> {
  const initial_state = retention ? [{ type: 'm.room.retention', state_key: '', content: retention }] : []
  const room = await createRoom(api, alice.token, { preset: 'public_chat', name: 'Short', initial_state })
  await join(api, bob.token, room)
  return room
}

/** Begins a round at once. */
async function round(): Promise<void> {
  await server.restart()
}

beforeAll(async () => {
  server = await startServer({ rooms: { retention: { enabled: true } } }, { clock: { now } })
  api = openApi(server.baseUrl)
  alice = await register(api, 'alice')
  bob = await register(api, 'bob')
})

afterAll(async () => {
  await api.close()
  await server.close()
})

describe('messages whose time is over', () => {
  test('are hidden from all readers at once, and removed by the next round', async () => {
    const room = await shared({ max_lifetime: 2 * DAY_MS })
    const old = await say(room, 'old secret')
    const thread = { rel_type: 'm.thread', event_id: old }
    const body = { msgtype: 'm.text', body: 'old reply', 'm.relates_to': thread }
    await api.call('PUT', inRoom(room, '/send/m.room.message/reply'), { token: alice.token, body })
    ahead += DAY_MS
    await say(room, 'younger')
    expect(await paged(room)).toEqual(['younger', 'old reply', 'old secret'])
    ahead += DAY_MS + HOUR_MS
    expect(await paged(room)).toEqual(['younger'])
    expect(textsIn((await firstSync(room)).timeline.events)).toEqual(['younger'])
    const forth = await api.call('GET', inRoom(room, '/messages?dir=f&limit=100'), { token: bob.token })
    expect(textsIn(forth.chunk)).toEqual(['younger'])
    for (const path of [
      inRoom(room, `/event/${enc(old)}`),
      inRoom(room, `/context/${enc(old)}`),
      `${V1}${inRoom(room, `/relations/${enc(old)}`)}`,
    ]) {
      const { status, body: answer } = await api.request('GET', path, { token: bob.token })
      expect([status, answer.errcode], path).toEqual([404, 'M_NOT_FOUND'])
    }
    const search = { search_categories: { room_events: { search_term: 'secret' } } }
    const found = await api.call('POST', '/search', { token: bob.token, body: search })
    expect(found.search_categories.room_events.results).toEqual([])
    const { chunk } = await api.call('GET', `${V1}${inRoom(room, '/threads')}`, { token: bob.token })
    expect(JSON.stringify(chunk)).not.toContain('old')
    // They are there until the next round.
    expect(await stored(room)).toContain('old secret')
    await round()
    await waitUntil('their removal', async () => !/old (secret|reply)/.test(await stored(room)))
    await waitUntil('the end', async () => (await purges()).length === 0)
    expect(await paged(room)).toEqual(['younger'])
    const state = await api.call('GET', inRoom(room, '/state'), { token: bob.token })
    expect(state.map(({ type }: Json) => type)).toEqual(expect.arrayContaining(['m.room.name', 'm.room.retention']))
    const notes = await server.database.db.query("SELECT 1 FROM undone WHERE kind = 'purge'")
    expect(notes).toEqual([])
    await say(room, 'new')
    expect(await paged(room)).toEqual(['new', 'younger'])
  })

  test('leave the newest event, and count for nobody any more', async () => {
    const room = await shared({ max_lifetime: DAY_MS })
    for (const text of ['one', 'two', 'three']) await say(room, text)
    ahead += 2 * DAY_MS
    expect(await paged(room)).toEqual(['three'])
    await round()
    await waitUntil('their removal', async () => !/"(one|two)"/.test(await stored(room)))
    await waitUntil('the end', async () => (await purges()).length === 0)
    expect(await stored(room)).toContain('"three"')
    const shown = await firstSync(room)
    expect(textsIn(shown.timeline.events)).toEqual(['three'])
    expect(shown.unread_notifications.notification_count).toBe(1)
    const newest = shown.timeline.events.at(-1).event_id
    await api.call('POST', inRoom(room, `/receipt/m.read/${enc(newest)}`), { token: bob.token, body: {} })
    expect((await firstSync(room)).unread_notifications.notification_count).toBe(0)
  })

  test('are those of rooms that say so, within what the server allows', async () => {
    const [silent, hasty, wrong] = [
      await shared(),
      await shared({ max_lifetime: 1 }),
      await shared({ max_lifetime: '1' }),
    ]
    for (const room of [silent, hasty, wrong]) for (const text of ['a', 'b']) await say(room, text)
    ahead += 20 * HOUR_MS
    for (const room of [silent, hasty, wrong]) expect(await paged(room)).toEqual(['b', 'a'])
    ahead += 5 * HOUR_MS
    expect([await paged(silent), await paged(hasty), await paged(wrong)]).toEqual([['b', 'a'], ['b'], ['b', 'a']])
    // A room says so from now on, and takes it back.
    const set = (content: object) =>
      api.call('PUT', inRoom(silent, '/state/m.room.retention'), { token: alice.token, body: content })
    const { event_id } = await set({ max_lifetime: DAY_MS })
    expect(await paged(silent)).toEqual([])
    await api.call('PUT', inRoom(silent, `/redact/${enc(event_id)}/r`), { token: alice.token, body: {} })
    expect(await paged(silent)).toEqual(['b', 'a'])
  })

  test('are told by when they came in, where they lie about their time', async () => {
    const room = await shared({ max_lifetime: 3 * DAY_MS })
    const early = await say(room, 'from the future')
    await say(room, 'honest')
    const late = await say(room, 'from long ago')
    await say(room, 'young')
    const { db } = server.database
    const lie = (ts: number, id: string) =>
      db.tx((tx) => tx.query('UPDATE event SET origin_server_ts = $1 WHERE event_id = $2', [ts, id]))
    await lie(now() + 10_000 * DAY_MS, early)
    await lie(1, late)
    await round()
    await waitUntil(
      'a round',
      async () => (await db.query('SELECT 1 FROM arrival_mark WHERE at > $1', [now() - HOUR_MS])).length > 0,
    )
    // What says it is old is hidden, and takes nothing else with it.
    expect(await paged(room)).toEqual(['young', 'honest', 'from the future'])
    ahead += 3 * DAY_MS + HOUR_MS
    await say(room, 'last')
    await round()
    await waitUntil('their removal', async () => !/future|honest|long ago|young/.test(await stored(room)))
    expect(await paged(room)).toEqual(['last'])
  })

  test('are kept while nothing is switched on', async () => {
    const room = await shared({ max_lifetime: DAY_MS })
    for (const text of ['one', 'two']) await say(room, text)
    ahead += 40 * DAY_MS
    await server.restart({ rooms: { retention: { enabled: false } } })
    expect(await paged(room)).toEqual(['two', 'one'])
    await server.restart({ rooms: { retention: { enabled: true, default_days: 10, shortest_hours: 0 } } })
    expect(await paged(room)).toEqual(['two'])
  })

  test('of rooms that say nothing go by the default', async () => {
    const room = await shared()
    for (const text of ['one', 'two']) await say(room, text)
    ahead += 9 * DAY_MS
    expect(await paged(room)).toEqual(['two', 'one'])
    ahead += 2 * DAY_MS
    expect(await paged(room)).toEqual(['two'])
    await round()
    await waitUntil('their removal', async () => !/"one"/.test(await stored(room)))
  })
})

test('other servers are not given what is over, and it is not fetched from them again', async () => {
  let further = 0
  const street = openNeighbourhood({ clock: { now: () => Date.now() + further } })
  try {
    const [alpha, beta] = await Promise.all([street.open({ rooms: { retention: { enabled: true } } }), street.open()])
    const [near, far] = [await alpha.person('near'), await beta.person('far')]
    const initial_state = [{ type: 'm.room.retention', state_key: '', content: { max_lifetime: DAY_MS } }]
    const room = await createRoom(alpha.api, near.token, { preset: 'public_chat', initial_state })
    await sendText(alpha.api, near.token, room, 'a', 'over soon')
    further += 2 * DAY_MS
    await sendText(alpha.api, near.token, room, 'b', 'fresh')
    await beta.api.call('POST', `/join/${enc(room)}?server_name=${enc(alpha.name)}`, { token: far.token, body: {} })
    const seenBy = async (who: Account, at: Api) =>
      textsIn((await at.call('GET', inRoom(room, '/messages?dir=b&limit=100'), { token: who.token })).chunk)
    await waitUntil('history', async () => (await seenBy(far, beta.api)).includes('fresh'))
    expect(await seenBy(far, beta.api)).toEqual(['fresh'])
    // The other server keeps what it has for ever.
    await sendText(beta.api, far.token, room, 'c', 'of the other')
    await waitUntil('a message', async () => (await seenBy(near, alpha.api)).includes('of the other'))
    further += 2 * DAY_MS
    await sendText(alpha.api, near.token, room, 'd', 'last')
    await waitUntil('the last one', async () => (await seenBy(far, beta.api)).includes('last'))
    await alpha.server.restart()
    const { db } = alpha.server.database
    await waitUntil(
      'its removal',
      async () => (await db.query("SELECT 1 FROM event WHERE json LIKE '%of the other%'")).length === 0,
    )
    expect(await seenBy(near, alpha.api)).toEqual(['last'])
    expect(await seenBy(far, beta.api)).toContain('of the other')
  } finally {
    await street.close()
  }
})
