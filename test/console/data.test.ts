import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type GraphEvent, layOut } from '../../src/console/graph-layout.ts'
import { lastHour, p99Of, sampleOf, samplesOf } from '../../src/console/history.ts'
import { createOverview } from '../../src/domain/admin/views/overview.ts'
import {
  LAGGING_COUNTED_EVERY_MS,
  MAX_HISTORY,
  MAX_SERVERS_AT_A_GLANCE,
} from '../../src/domain/limits/console-pages.ts'
import type { Glance } from '../../src/domain/metrics.ts'
import { SECRET } from '../admin/office.ts'
import { type Account, createRoom, type Json, join, sendText } from '../support/api.ts'
import { type ConsoleWorld, openConsoleWorld } from './world.ts'

const SMTP_PASSWORD = 'a password that nobody may read'

let world: ConsoleWorld
let alice: Account
let garden: string

const OWN = '/_hearth/admin/v1'
const enc = encodeURIComponent
const get = (path: string): Promise<Json> => world.call('GET', OWN + path)

beforeAll(async () => {
  world = await openConsoleWorld({
    registration: { enabled: true },
    identity: { mail: { smtp: { host: '127.0.0.1', port: 2525, user: 'mailer', password: SMTP_PASSWORD } } },
  })
  alice = await world.person('alice')
  const bob = await world.person('bob')
  garden = await createRoom(world.api, alice.token, { name: 'Garden', preset: 'public_chat', room_alias_name: 'roses' })
  await join(world.api, bob.token, garden)
  await createRoom(world.api, alice.token, { name: '<img src=x onerror=alert(1)>' })
  await createRoom(world.api, bob.token, { name: 'They say "hi"' })
})
afterAll(() => world.close())

const idsIn = ({ rooms }: Json): string[] => rooms.map(({ room_id }: Json) => room_id)

describe('rooms in pages', () => {
  const idsOf = idsIn

  it('in the order of their members, with what a list shows', async () => {
    const { rooms, total } = await get('/rooms')
    expect(total).toBe(3)
    expect(rooms[0]).toMatchObject({
      room_id: garden,
      name: 'Garden',
      canonical_alias: '#roses:localhost',
      joined_members: 2,
      joined_local_members: 2,
      creator: alice.userId,
      events: expect.any(Number),
    })
    expect(rooms[1].name).toBe('<img src=x onerror=alert(1)>')
  })

  it.each([
    ['gARDen', 1],
    ['roses', 1],
    ['onerror', 1],
    ['localhost', 3],
    ["' OR 1=1 --", 0],
    ['%', 0],
    ['say "hi"', 1],
  ])('that contain %s', async (search, total) => {
    const answer = await get(`/rooms?search=${enc(search)}`)
    expect([answer.total, answer.rows ?? answer.rooms.length].slice(0, 1)).toEqual([total])
    expect(idsOf(answer)).toHaveLength(total)
  })

  it('page by page', async () => {
    const all = idsOf(await get('/rooms?order=newest'))
    const pages = [0, 1, 2].map((from) => get(`/rooms?order=newest&limit=1&from=${from}`))
    expect((await Promise.all(pages)).flatMap(idsOf)).toEqual(all)
  })

  it.each(['order=age', 'limit=x', 'from=-1'])('not by %s', async (query) => {
    const { status, body } = await world.ask('GET', `${OWN}/rooms?${query}`)
    expect([status, body.errcode]).toEqual([400, 'M_INVALID_PARAM'])
  })

  it('with their members, and their state without members', async () => {
    const { members, total } = await get(`/rooms/${enc(garden)}/members?limit=1`)
    expect([members, total]).toEqual([[{ user_id: alice.userId, membership: 'join' }], 2])
    const { state } = await get(`/rooms/${enc(garden)}/state`)
    const types = state.map(({ type }: Json) => type)
    expect(types).toContain('m.room.create')
    expect(types).not.toContain('m.room.member')
    expect(types).toEqual([...types].sort())
  })

  it.each(['members', 'state', 'graph'])('but no %s of a room that is unknown', async (part) => {
    const { status, body } = await world.ask('GET', `${OWN}/rooms/!gone:localhost/${part}`)
    expect([status, body.errcode]).toEqual([404, 'M_NOT_FOUND'])
  })
})

describe('events with escapes that Postgres refuses to decode', () => {
  const odd = '\\\\u0000\\\\ud83d'

  it('spoil neither the search nor the picture', async () => {
    const room = await createRoom(world.api, alice.token, { name: 'Odd' })
    const { db } = world.server.database
    await db.tx((tx) =>
      tx.query(
        `UPDATE event SET json = replace(json, '"Odd"', '"Odd ${odd.replaceAll('\\\\', '\\')}"')
         WHERE type = 'm.room.name' AND json LIKE '%"Odd"%'`,
      ),
    )
    expect(idsIn(await get('/rooms?search=odd'))).toEqual([room])
    expect((await get(`/rooms/${enc(room)}/graph`)).events.length).toBeGreaterThan(3)
    expect(idsIn(await get('/rooms'))).toContain(room)
  })
})

describe('the graph of a room', () => {
  it('names each event, what it refers to, and the newest', async () => {
    const newest = await sendText(world.api, alice.token, garden, 'g1', 'one')
    const { events, extremities, missing } = await get(`/rooms/${enc(garden)}/graph`)
    expect(events[0]).toMatchObject({ event_id: newest, type: 'm.room.message', sender: alice.userId, standing: null })
    expect(events[0].prev_events).toEqual([events[1].event_id])
    expect(events.at(-1)).toMatchObject({ type: 'm.room.create', prev_events: [] })
    expect([extremities, missing]).toEqual([[newest], []])
  })

  it('shows what was refused, with the reason', async () => {
    const refused = await sendText(world.api, alice.token, garden, 'g2', 'refused')
    const { db } = world.server.database
    const reason = 'by its auth events: rule 5.3: not in the room'
    await db.tx((tx) =>
      tx.query("UPDATE event SET standing = 'rejected', reason = $2, room_pos = NULL WHERE event_id = $1", [
        refused,
        reason,
      ]),
    )
    const { events } = await get(`/rooms/${enc(garden)}/graph`)
    expect(events.find(({ event_id }: Json) => event_id === refused)).toMatchObject({ standing: 'rejected', reason })
  })

  const event = (event_id: string, prev_events: string[], depth: number): GraphEvent => ({
    event_id,
    prev_events,
    depth,
    type: 'm.room.message',
    state_key: null,
    sender: '@a:b',
    origin_server_ts: 0,
    standing: null,
    reason: null,
    bytes: 0,
  })

  it('is drawn as one line where nothing branches', () => {
    const { columns, edges, width } = layOut([event('c', ['b'], 3), event('b', ['a'], 2), event('a', [], 1)])
    expect([columns, width]).toEqual([[0, 0, 0], 1])
    expect(edges.map(({ fromRow, toRow, isOpen }) => [fromRow, toRow, isOpen])).toEqual([
      [0, 1, false],
      [1, 2, false],
    ])
  })

  it('has a column for each branch, until they meet', () => {
    const { columns, edges } = layOut([
      event('e', ['c', 'd'], 4),
      event('d', ['a'], 3),
      event('c', ['a'], 2),
      event('a', ['gone'], 1),
    ])
    expect(columns).toEqual([0, 1, 0, 0])
    expect(edges.filter(({ isOpen }) => isOpen)).toEqual([
      { fromRow: 3, fromColumn: 0, viaColumn: 0, toRow: 4, toColumn: 0, isOpen: true },
    ])
  })

  it('is drawn of anything, also of circles and of hundreds of branches', () => {
    expect(layOut([]).width).toBe(1)
    expect(layOut([event('a', ['b', 'a'], 1), event('b', ['a'], 1)]).columns).toHaveLength(2)
    const many = Array.from({ length: 300 }, (_, i) => event(`e${i}`, [`p${i}`, `q${i}`], 300 - i))
    const { columns, width } = layOut(many)
    expect(Math.max(...columns)).toBeLessThan(width)
    expect(width).toBeLessThan(20)
  })
})

describe('the overview', () => {
  it('counts what happens', async () => {
    const before = await get('/overview')
    await sendText(world.api, alice.token, garden, 'o1', 'one')
    const after = await get('/overview')
    expect(after.glance.events).toBeGreaterThan(before.glance.events)
    expect(after.glance.requests.count).toBeGreaterThan(before.glance.requests.count)
    expect(after.size).toMatchObject({ users: 3, rooms: 4, last_backup_at: null })
    expect(after.size.database_bytes).toBeGreaterThan(1_000_000)
    expect(after.federation).toEqual({ behind: [], behind_total: 0, failing_total: 0 })
  })

  it('keeps what happened in the last hour, and no more of it', async () => {
    const { history } = world.server.services.admin.views
    await history.look()
    await sendText(world.api, alice.token, garden, 'h1', 'one')
    await history.look()
    const { since, points } = await get('/overview/history')
    expect(since).toBe((await get('/overview')).since)
    const [before, after] = points.slice(-2)
    expect(after.glance.events).toBeGreaterThan(before.glance.events)
    expect(samplesOf({ since, points: [before, { ...after, at: before.at + 2_000 }] })[0]?.events).toBeGreaterThan(0)
    for (let i = 0; i < MAX_HISTORY; i += 1) await history.look()
    expect((await get('/overview/history')).points).toHaveLength(MAX_HISTORY)
  })

  it('draws the health of servers from as many as fit, and counts all', async () => {
    const { db } = world.server.database
    await db.tx((tx) =>
      tx.query(
        `INSERT INTO federation_destination (server, first_unsent, failures, retry_at)
         SELECT 'server' || i || '.example', 1, i % 3, 5 FROM generate_series(1, 600) i`,
      ),
    )
    let now = 1_000_000
    let reads = 0
    const scan = (text: string, values?: []) => {
      reads += 1
      return db.scan(text, values)
    }
    const counted = { query: db.query, scan }
    const overview = createOverview({
      db: counted as unknown as typeof db,
      clock: { now: () => now },
      metrics: { glance: async () => ({ events: 0 }) as unknown as Glance },
      statistics: { latestMonthlyActiveUsers: () => Number.NaN },
      since: 0,
    })
    const { federation } = await overview.read()
    expect([federation.behind.length, federation.behind_total, federation.failing_total]).toEqual([
      MAX_SERVERS_AT_A_GLANCE,
      600,
      400,
    ])
    expect(federation.behind[0]).toEqual({ server: 'server101.example', failures: 2, retry_at: 5 })
    const before = reads
    await Promise.all([overview.read(), overview.read()])
    expect(reads).toBe(before)
    now += LAGGING_COUNTED_EVERY_MS
    await db.tx((tx) => tx.query('DELETE FROM federation_destination'))
    expect((await overview.read()).federation).toEqual({ behind: [], behind_total: 0, failing_total: 0 })
  })

  it('leaves out requests that are meant to wait', async () => {
    const before = await get('/overview')
    await world.api.call('GET', '/sync?timeout=300', { token: alice.token })
    const after = await get('/overview')
    expect(after.glance.requests.count - before.glance.requests.count).toBe(1)
  })

  it.each([
    [[0, 0, 0], null],
    [[100, 0, 0], 0.99],
    [[98, 2, 0], 5.5],
    [[0, 0, 7], 10],
  ])('reads the time of 99 of 100 requests from the counts %j', (buckets, ms) => {
    const p99 = p99Of({ bounds: [0.001, 0.01], buckets })
    if (ms === null) expect(p99).toBeNull()
    else expect(p99).toBeCloseTo(ms, 5)
  })
})

describe('the charts', () => {
  const sample = (minute: number) => ({
    at: minute * 60_000,
    events: 0,
    requests: 0,
    p99: null,
    syncs: 0,
    resident: null,
  })
  const minutes = (samples: readonly { readonly at: number }[]) => samples.map(({ at }) => at / 60_000)

  it('go on where the history of the server ends, for an hour', () => {
    expect(minutes(lastHour([sample(0), sample(50), sample(70)], [sample(70), sample(75)]))).toEqual([50, 70, 75])
    expect(lastHour([], [])).toEqual([])
  })

  it('begin anew where the server was started again', () => {
    const look = (since: number, at: number) => ({
      since,
      at,
      glance: { events: 5, requests: { count: 1, bounds: [1], buckets: [1, 0] }, waitingSyncs: 0 },
    })
    expect(sampleOf(look(1, 1_000), look(2, 3_000))).toBeUndefined()
    expect(sampleOf(look(1, 1_000), look(1, 3_000))).toMatchObject({ events: 0, at: 3_000 })
  })
})

describe('what runs beside the rooms', () => {
  it('bridges without their tokens', async () => {
    expect(await get('/appservices')).toEqual({ appservices: [] })
  })

  it('backups', async () => {
    expect(await get('/backups')).toEqual({ backups: [], every_hours: expect.any(Number) })
    await world.server.database.db.tx((tx) =>
      tx.query("INSERT INTO backup_run (backup_id, place, begun_at, ended_at, bytes) VALUES ('b1', '/srv', 1, 2, 3)"),
    )
    expect((await get('/backups')).backups).toEqual([
      { backup_id: 'b1', place: '/srv', begun_at: 1, ended_at: 2, bytes: 3 },
    ])
  })

  it('bindings, and each look is in the record', async () => {
    await world.server.database.db.tx((tx) =>
      tx.query(
        "INSERT INTO identity_binding (medium, address, user_id, bound_at) VALUES ('email', 'a@example.org', '@alice:localhost', 1)",
      ),
    )
    const { bindings, total } = await get('/identity/bindings?search=EXAMPLE')
    expect([bindings, total]).toEqual([
      [{ medium: 'email', address: 'a@example.org', user_id: '@alice:localhost', bound_at: 1 }],
      1,
    ])
    expect((await get('/identity/bindings?search=nobody')).total).toBe(0)
    const { acts } = await get('/acts?limit=1')
    expect(acts[0].act).toBe('GET /_hearth/admin/v1/identity/bindings')
  })

  it('the configuration, without any secret', async () => {
    const answer = await get('/configuration')
    const keys = answer.settings.map(({ key }: Json) => key)
    expect(keys).toContain('server_name')
    const secret = answer.settings.find(({ key }: Json) => key === 'registration.shared_secret')
    expect(secret).toMatchObject({ value: '"[hidden]"', isDefault: false })
    const text = JSON.stringify(answer)
    for (const hidden of [SECRET, SMTP_PASSWORD]) expect(text).not.toContain(hidden)
  })
})
