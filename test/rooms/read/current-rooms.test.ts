import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ByteBudget } from '../../../src/core/byte-budget.ts'
import type { RoomId, ServerName } from '../../../src/core/ids.ts'
import { MAX_EVENTS_MOVED_ON } from '../../../src/domain/limits/cluster.ts'
import { createCurrentRooms } from '../../../src/domain/rooms/read/current-rooms.ts'
import type { Room } from '../../../src/domain/rooms/room/room.ts'
import { OnlyWhereServed } from '../../../src/domain/standby/only-where-served.ts'
import { type Database, openDatabase } from '../../../src/store/db/db.ts'
import { type Account, type Api, createRoom, join, openApi, register, sendText } from '../../support/api.ts'
import { startServer, type TestServer } from '../../support/server.ts'
import { SOURCES } from '../../support/sources.ts'
import { waitUntil } from '../../support/wait.ts'

let server: TestServer
let api: Api
let alice: Account
let bob: Account
let room: RoomId

beforeAll(async () => {
  server = await startServer()
  api = openApi(server.baseUrl)
  alice = await register(api, 'alice')
  bob = await register(api, 'bob')
  room = (await createRoom(api, alice.token, { preset: 'public_chat' })) as RoomId
})
afterAll(async () => {
  await api.close()
  await server.close()
})

const url = (more: string) => `/rooms/${encodeURIComponent(room)}/${more}`

const setTopic = (topic: string) =>
  api.call('PUT', `/rooms/${encodeURIComponent(room)}/state/m.room.topic/`, { token: alice.token, body: { topic } })

/** @param betweenReads called after the head of a room was read, before the rest of it is */
function roomsWith(betweenReads: () => Promise<unknown> = async () => undefined, db = server.database.db) {
  let loads = 0
  let looks = 0
  const watched: Database = {
    ...db,
    async query<Row extends object>(text: string, values?: readonly unknown[]) {
      const rows = await db.query<Row>(text, values)
      if (text.includes('FROM room WHERE room_nid = ANY') && !text.includes('RECURSIVE')) {
        loads++
        await betweenReads()
      }
      if (text.includes(') AS news')) looks++
      return rows
    },
  }
  const budget = new ByteBudget(1_000_000)
  const find = createCurrentRooms<Room>({
    db: watched,
    serverName: server.config.server_name as ServerName,
    budget,
    viewOf: (read) => read,
  })
  return { find, budget, loads: () => loads, looks: () => looks }
}

/** As a write does that brings no event. */
const raise = (roomId = room) =>
  server.database.db.tx((tx) =>
    tx.query('UPDATE room SET head_version = head_version + 1 WHERE room_id = $1', [roomId]),
  )

const headVersion = async (): Promise<number> =>
  (await server.database.db.query<{ v: number }>('SELECT head_version AS v FROM room WHERE room_id = $1', [room]))[0]!.v

describe('a room at a node that stands by', () => {
  it('is read once, until it is written', async () => {
    const { find, loads } = roomsWith()
    const first = await find(room)
    expect(first?.id).toBe(room)
    expect(await find(room)).toBe(first)
    await Promise.all([find(room), find(room)])
    expect(loads()).toBe(1)
    await raise()
    const [one, other] = await Promise.all([find(room), find(room)])
    expect(one).not.toBe(first)
    expect(other).toBe(one)
    expect(loads()).toBe(2)
  })

  it('moves on by messages', async () => {
    const { find, loads } = roomsWith()
    const copy = await find(room)
    const eventId = await sendText(api, alice.token, room, 'm1', 'one')
    const moved = await find(room)
    expect(moved).toBe(copy)
    expect(moved?.committed.version).toBe(await headVersion())
    expect(moved?.timeline.newest?.nid).toBe(moved?.committed.nid)
    expect(moved?.fact(moved.committed.nid)?.id).toBe(eventId)
    expect(moved?.committed.extremities.map(({ id }) => id)).toEqual([eventId])
    await Promise.all(Array.from({ length: 10 }, (_, n) => sendText(api, alice.token, room, `more${n}`, `${n}`)))
    const found = await Promise.all(Array.from({ length: 5 }, () => find(room)))
    expect(new Set(found)).toEqual(new Set([copy]))
    expect(copy?.committed.version).toBe(await headVersion())
    expect(loads()).toBe(1)
  })

  it('knows after moving on that a message relates to another', async () => {
    const { find, loads } = roomsWith()
    const target = await sendText(api, alice.token, room, 'target', 'what do you think?')
    const copy = await find(room)
    const [event] = await copy!.eventsAt([{ nid: copy!.committed.nid, pos: 0, streamPos: 0, notifiable: 0 }])
    expect(event).toMatchObject({ id: target, hasRelations: false })
    const body = { 'm.relates_to': { rel_type: 'm.annotation', event_id: target, key: 'yes' } }
    await api.call('PUT', url('send/m.reaction/yes'), { token: alice.token, body })
    expect(await find(room)).toBe(copy)
    expect(event?.hasRelations).toBe(true)
    expect(loads()).toBe(1)
  })

  it('is read anew after a message whose place is a branch that it does not know', async () => {
    const roomId = (await createRoom(api, alice.token)) as RoomId
    const { find } = roomsWith()
    const copy = await find(roomId)
    const { db } = server.database
    const place = (eventId: string, chain: number, seq: number) =>
      db.tx((tx) =>
        tx.query('UPDATE event SET state_chain = $2, state_seq = $3 WHERE event_id = $1', [eventId, chain, seq]),
      )
    const { chain, seq } = copy!.committed
    // Of the state before it was resolved: on a chain of its own, or where nobody else continues that of the current state.
    await place(await sendText(api, alice.token, roomId, 'b1', 'one'), chain + 1, 0)
    const second = await find(roomId)
    expect(second).not.toBe(copy)
    await place(await sendText(api, alice.token, roomId, 'b2', 'two'), chain, seq + 1)
    const third = await find(roomId)
    expect(third).not.toBe(second)
    // A place that is known.
    await place(await sendText(api, alice.token, roomId, 'b3', 'three'), chain, seq - 1)
    expect(await find(roomId)).toBe(third)
  })

  const WRITES: Readonly<Record<string, (eventId: string) => Promise<unknown>>> = {
    'a redaction': (eventId) => {
      const path = url(`redact/${encodeURIComponent(eventId)}/gone`)
      return api.call('PUT', path, { token: alice.token, body: {} })
    },
    'too many messages': async () => {
      for (let n = 0; n < MAX_EVENTS_MOVED_ON; n++) await sendText(api, alice.token, room, `many${n}`, `${n}`)
    },
    'a write that brings no event': () => raise(),
    'a purge': () =>
      server.database.db.tx((tx) => tx.query('UPDATE room SET purged_to = 1 WHERE room_id = $1', [room])),
  }

  it.each(Object.keys(WRITES))('is read anew after %s, whatever came beside it', async (what) => {
    const { find, loads, looks } = roomsWith()
    const eventId = await sendText(api, alice.token, room, `before ${what}`, 'before')
    const copy = await find(room)
    await WRITES[what]!(eventId)
    await sendText(api, alice.token, room, `after ${what}`, 'after')
    const now = await find(room)
    expect(now).not.toBe(copy)
    expect(now?.committed.version).toBe(await headVersion())
    expect(loads()).toBe(2)
    expect(looks()).toBe(what === 'too many messages' ? 0 : 1)
  })

  it('takes no more memory after many writes', async () => {
    const { find, budget } = roomsWith()
    const readAll = async () => {
      const read = await find(room)
      for (const type of ['m.room.create', 'm.room.topic', 'm.room.power_levels']) await read?.stateEvent(type, '')
      return budget.bytes
    }
    const before = await readAll()
    for (let n = 0; n < 10; n++) {
      await setTopic(`${n}`)
      await raise()
      await readAll()
    }
    expect(await readAll()).toBeLessThan(2 * before)
  })

  it('is read again if it was written between two of the queries that read it', async () => {
    let joined = false
    const { find, loads } = roomsWith(async () => {
      if (!joined) await join(api, bob.token, room)
      joined = true
    })
    const read = await find(room)
    expect(loads()).toBe(2)
    expect(read?.committed.version).toBe(await headVersion())
    const members = [...(read?.localMembers.values() ?? [])].map(({ userId }) => userId)
    expect(members.sort()).toEqual([alice.userId, bob.userId])
    expect((await read?.stateEvent('m.room.member', bob.userId))?.content.membership).toBe('join')
  })

  it('is read again after the connection was lost: another server may use the version for another write', async () => {
    const name = 'a reader of this test'
    const db = openDatabase({ connection: server.database.connection, poolSize: 1, readsOnly: true, name })
    const { find } = roomsWith(undefined, db)
    const version = await headVersion()
    let copy = await find(room)
    // Any of its connections: what is read on several must be of one server.
    for (const reader of [db, db.bulk]) {
      expect(await find(room)).toBe(copy)
      const [session] = await reader.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
      await server.database.db.query('SELECT pg_terminate_backend($1, 10000) AS ended', [session!.pid])
      // It is noticed a moment later.
      copy = await waitUntil('another copy', async () => {
        const read = await find(room).catch(() => undefined)
        return read !== copy && read
      })
    }
    expect(copy?.committed.version).toBe(version)
    await db.close()
  })

  it('is passed on while it is written all the time', async () => {
    let n = 0
    const { find } = roomsWith(() => setTopic(`${n++}`))
    await expect(find(room)).rejects.toThrow(OnlyWhereServed)
  })

  it('is read once if it is large, also while it is written all the time', async () => {
    const large = (await createRoom(api, alice.token)) as RoomId
    const { db } = server.database
    await db.tx((tx) =>
      tx.query(
        `INSERT INTO state_key (room_nid, key_id, type, state_key)
         SELECT room_nid, n, 'x', n || repeat('y', 200) FROM room, generate_series(1000, 6000) n WHERE room_id = $1`,
        [large],
      ),
    )
    const { find, loads } = roomsWith(() => raise(large))
    for (let n = 0; n < 2; n++) await expect(find(large)).rejects.toThrow(OnlyWhereServed)
    expect(loads()).toBe(1)
  })

  it('is passed on while its members are being fetched', async () => {
    const { find } = roomsWith()
    await find(room)
    const { db } = server.database
    await db.tx((tx) =>
      tx.query(
        `INSERT INTO room_filling (room_nid, resident, servers, join_event_id, since)
         SELECT room_nid, 'elsewhere.example', '{}', '$join', 0 FROM room WHERE room_id = $1`,
        [room],
      ),
    )
    await expect(find(room)).rejects.toThrow(OnlyWhereServed)
    await db.tx((tx) => tx.query('UPDATE room_filling SET filled_at = 1'))
    expect((await find(room))?.id).toBe(room)
  })

  it('is not there if this server does not know it', async () => {
    expect(await roomsWith().find('!nowhere:localhost' as RoomId)).toBeUndefined()
  })
})

/** Who else writes what a node that stands by has in memory, and why it does not have to raise the version of the head. */
const OTHER_WRITERS: Readonly<Record<string, string>> = {
  'store/events/relation-writes.ts': 'a part of the batch, which raises it',
  'store/events/state-collection.ts': 'raises it itself',
  'store/events/history-removal.ts': 'only what purged_to covers, which is part of the stamp',
  'store/rooms/history-purges.ts': 'purged_to is part of the stamp',
  'store/rooms/room-purge.ts': 'the row of the room goes first',
  'store/rooms/partial-state-rooms.ts': 'in a room that lacks members, which is passed on',
  'store/rooms/rooms.ts':
    'whether a room is forgotten is read each time, and the version of a room is set before its first event',
  'store/backup/redo.ts': 'before a server runs',
}

describe('the version of a room', () => {
  it('is raised by all that write what is kept under it', () => {
    const tables = ['event', 'event_gap', 'event_relation', 'room', 'room_member', 'state_chain', 'state_change']
    const writes = new RegExp(
      `(?:INSERT INTO|UPDATE|DELETE FROM) (?:${[...tables, 'state_key', 'thread'].join('|')})\\b`,
    )
    const writers = SOURCES.filter(({ text }) => writes.test(text)).map(({ name }) => name)
    const batch = 'store/events/event-batch.ts'
    expect(writers.sort()).toEqual([batch, ...Object.keys(OTHER_WRITERS)].sort())
  })
})
