import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { EventId } from '../../../src/core/ids.ts'
import type { Fence } from '../../../src/store/cluster/nodes.ts'
import { writeEventBatch } from '../../../src/store/events/event-batch.ts'
import type { EventRow } from '../../../src/store/events/events.ts'
import { NO_RELATIONS } from '../../../src/store/events/relation-writes.ts'
import { loadState, type StatePoint } from '../../../src/store/events/state.ts'
import { giveUpChains } from '../../../src/store/events/state-collection.ts'
import { NO_UNREAD } from '../../../src/store/events/unread-writes.ts'
import { createStateCollector } from '../../../src/workers/state-collector.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { takePlace } from '../../support/place.ts'
import { waitUntil } from '../../support/wait.ts'
import { entriesOf, ForkedRoom, seededRandom, sorted } from './forked-room.ts'

let database: TestDatabase
let place: Fence
beforeAll(async () => {
  database = await createTestDatabase()
  place = await takePlace(database.db)
})
afterAll(() => database.drop())

/** A room whose chains branch off one another at random, and the events that stand somewhere on them. */
class Room {
  readonly log: ForkedRoom
  readonly events: StatePoint[] = []
  head: StatePoint

  constructor(nid: number, seed: number) {
    const random = seededRandom(seed)
    this.log = new ForkedRoom(nid)
    let eventNid = 0
    for (let chain = 0; chain <= 40; chain++) {
      const parent = random(chain)
      if (chain > 0) this.log.branch({ chain: parent, seq: random(this.log.chains.get(parent)!.changes.length + 1) })
      for (let n = 0; n <= random(6); n++) this.log.change(chain, [random(20), ++eventNid])
    }
    const points = this.log.points()
    for (let n = 0; n < 12; n++) this.events.push(points[random(points.length)]!)
    this.head = points[random(points.length)]!
  }

  get nid(): number {
    return this.log.nid
  }

  async write(): Promise<void> {
    const { db } = database
    await this.log.write(db)
    for (const point of this.log.points()) if (point.seq % 4 === 1) await this.log.checkpoint(db, point)
    await db.query(
      `INSERT INTO room (room_nid, room_id, room_version, head_version, extremities, depth, last_pos, last_nid, notifiable,
         state_chain, state_seq) VALUES ($1, $2, '12', 7, '{}', 1, 1, 1, 0, $3, $4)`,
      [this.nid, `!room${this.nid}`, this.head.chain, this.head.seq],
    )
    for (const [index, { chain, seq }] of this.events.entries()) {
      // Every third stands on chain 0 itself, and led to a current state elsewhere.
      const isElsewhere = index % 3 === 0
      await db.query(
        `INSERT INTO event (event_nid, room_nid, room_pos, sender_nid, origin_server_ts, notifiable, state_chain, state_seq,
           current_chain, current_seq, event_id, type, json) VALUES ($1, $2, $3, 1, 1, 0, $4, $5, $6, $7, $8, 't', '{}')`,
        [
          this.nid * 1000 + index,
          this.nid,
          index + 1,
          ...(isElsewhere ? [0, 0, chain, seq] : [chain, seq, null, null]),
          `$${this.nid}-${index}`,
        ],
      )
    }
  }

  /** What is in use: where events and the head stand, with all that this continues, and the newest chain. */
  used(): Set<number> {
    const used = new Set<number>()
    const last = Math.max(...this.log.chains.keys())
    for (const { chain } of [...this.events, this.head, { chain: last }]) {
      for (let at: number | undefined = chain; at !== undefined; at = this.log.chains.get(at)!.parent?.chain)
        used.add(at)
    }
    return used
  }
}

const chainsIn = async (table: string, roomNid: number): Promise<number[]> => {
  const rows = await database.db.query<{ chain: number }>(
    `SELECT DISTINCT chain FROM ${table} WHERE room_nid = $1 ORDER BY chain`,
    [roomNid],
  )
  return rows.map(({ chain }) => chain)
}

const headVersion = async (roomNid: number): Promise<number> => {
  const [row] = await database.db.query<{ head_version: number }>('SELECT head_version FROM room WHERE room_nid = $1', [
    roomNid,
  ])
  return row!.head_version
}

const collect = () => createStateCollector(database.db).round(() => false)

describe('collection of state that nothing refers to', () => {
  const rooms = Array.from({ length: 20 }, (_, index) => new Room(index + 1, 31 * index + 5))

  it('removes those chains with all that is theirs, and leaves every state that an event stands on', async () => {
    for (const room of rooms) await room.write()
    expect(await collect()).toBeGreaterThan(0)
    for (const room of rooms) {
      const used = room.used()
      expect(used.size).toBeLessThan(room.log.chains.size)
      const kept = (chains: Iterable<number>) => [...chains].filter((chain) => used.has(chain)).sort((a, b) => a - b)
      expect(await chainsIn('state_chain', room.nid)).toEqual(kept(room.log.chains.keys()).filter((chain) => chain > 0))
      const withChanges = [...room.log.chains].filter(([, { changes }]) => changes.length > 0).map(([chain]) => chain)
      expect(await chainsIn('state_change', room.nid)).toEqual(kept(withChanges))
      for (const chain of await chainsIn('state_checkpoint', room.nid)) expect(used).toContain(chain)
      for (const point of [...room.events, room.head]) {
        expect(sorted(entriesOf(await loadState(database.db, room.nid, point)))).toEqual(sorted(room.log.state(point)))
      }
      expect(await headVersion(room.nid)).toBeGreaterThan(7)
    }
  })

  it('finds nothing more to do, and disturbs nobody', async () => {
    const versions = () => Promise.all(rooms.map((room) => headVersion(room.nid)))
    const before = await versions()
    expect(await collect()).toBe(0)
    expect(await versions()).toEqual(before)
  })

  it('goes on where it was stopped', async () => {
    const room = new Room(50, 77)
    await room.write()
    const collector = createStateCollector(database.db)
    let asked = 0
    while ((await collector.round(() => ++asked % 3 === 0)) > 0 || asked < 30);
    await collect()
    expect(await chainsIn('state_chain', 50)).toEqual(
      [...room.used()].filter((chain) => chain > 0).sort((a, b) => a - b),
    )
  })
})

const eventAt = (roomNid: number, chain: number, version: number): EventRow => ({
  event_nid: roomNid * 1000 + 500 + version,
  room_nid: roomNid,
  room_pos: 500 + version,
  sender_nid: 1,
  origin_server_ts: 1,
  notifiable: 0,
  replaces_nid: null,
  redacted_by: null,
  auth_content: null,
  txn_token: null,
  state_chain: chain,
  state_seq: 0,
  key_id: null,
  event_id: `$${roomNid}-new-${version}` as EventId,
  type: 't',
  txn_id: null,
  standing: null,
  reason: null,
  stream_pos: null,
  current_chain: null,
  current_seq: null,
  auth_nids: null,
  has_relations: false,
  json: '{}',
})

describe('collection beside a writer', () => {
  let room: Room
  let nid = 100
  beforeEach(async () => {
    room = new Room(++nid, nid)
    await room.write()
  })

  const unused = () => [...room.log.chains.keys()].filter((chain) => !room.used().has(chain))

  /** A write that has the room stand on a chain that nothing else refers to. */
  const standOn = (chain: number, expected: number) =>
    writeEventBatch(
      database.db,
      {
        heads: [
          {
            roomNid: room.nid,
            roomId: `!room${room.nid}`,
            roomVersion: '12',
            expected,
            expectedNid: 1,
            version: expected + 1,
            extremities: [],
            merged: 0,
            depth: 2,
            lastPos: 2,
            lastNid: 2,
            notifiable: 0,
            stateChain: chain,
            stateSeq: 0,
          },
        ],
        events: [eventAt(room.nid, chain, expected)],
        promoted: [],
        chains: [],
        resynced: [],
        gaps: [],
        filled: [],
        earlyRedactions: [],
        keys: [],
        changes: [],
        members: [],
        unread: NO_UNREAD,
        txns: [],
        redactions: [],
        relations: NO_RELATIONS,
        sticky: [],
      },
      place,
    )

  it('a write that waits for it and was built on what was known before is refused', async () => {
    const [chain] = unused()
    let writing: ReturnType<typeof standOn> | undefined
    await database.db.tx(async (tx) => {
      expect(await giveUpChains(tx, room.nid, unused())).toBe(unused().length)
      writing = standOn(chain!, 7)
      await waitUntil('a writer that waits for the lock', async () => {
        const [row] = await tx.query<{ waiting: number }>(
          'SELECT count(*) AS waiting FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE NOT granted AND datname = current_database()',
        )
        return row!.waiting > 0
      })
    })
    expect((await writing!).advanced.size).toBe(0)
    expect((await standOn(0, 8)).advanced).toEqual(new Set([room.nid]))
  })

  it('a write that comes first keeps what it refers to', async () => {
    const chains = unused()
    expect((await standOn(chains[0]!, 7)).advanced.size).toBe(1)
    room.head = { chain: chains[0]!, seq: 0 }
    await database.db.tx((tx) => giveUpChains(tx, room.nid, chains))
    await collect()
    expect(await chainsIn('state_chain', room.nid)).toEqual(
      [...room.used()].filter((chain) => chain > 0).sort((a, b) => a - b),
    )
    expect(sorted(entriesOf(await loadState(database.db, room.nid, room.head)))).toEqual(
      sorted(room.log.state(room.head)),
    )
  })
})
