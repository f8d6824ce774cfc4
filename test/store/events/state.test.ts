import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Reader } from '../../../src/store/db/db.ts'
import {
  distanceToCheckpoint,
  getChainParents,
  getKeyHistory,
  getKeysAt,
  lastChain,
  loadCurrentStates,
  loadState,
  loadStates,
  type StatePoint,
  tipsOf,
} from '../../../src/store/events/state.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { entriesOf, ForkedRoom, seededRandom, sorted } from './forked-room.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.drop())

/** Counts the round trips. */
function counting(reader: Reader): Reader & { trips: number } {
  const counter = {
    trips: 0,
    query: <Row extends object>(text: string, values?: readonly unknown[]) => {
      counter.trips++
      return reader.query<Row>(text, values)
    },
  }
  return counter
}

const KEYS = 40

async function expectSameEverywhere(room: ForkedRoom, points: readonly StatePoint[]): Promise<void> {
  const keys = Array.from({ length: KEYS + 1 }, (_, key) => key)
  for (const point of points) {
    const expected = sorted(room.state(point))
    const reader = counting(database.db)
    const state = await loadState(reader, room.nid, point)
    expect(sorted(entriesOf(state)), `state at ${point.chain}, ${point.seq}`).toEqual(expected)
    expect(state.size).toBe(expected.length)
    expect(sorted(await getKeysAt(reader, room.nid, point, keys)), `keys at ${point.chain}, ${point.seq}`).toEqual(
      expected,
    )
    expect(reader.trips).toBe(2)
  }
}

describe.each([
  { depth: 0, length: 60, nid: 1 },
  { depth: 1, length: 60, nid: 2 },
  { depth: 20, length: 12, nid: 3 },
  { depth: 200, length: 5, nid: 4 },
])('a room whose chains branch off $depth deep', ({ depth, length, nid }) => {
  const room = ForkedRoom.deep(nid, depth, length, KEYS)
  const random = seededRandom(nid)
  const points = room.points().filter(() => depth < 200 || random(10) === 0)
  beforeAll(() => room.write(database.db))

  it('has the same state and keys at every point, each in one round trip', () => expectSameEverywhere(room, points))

  it('says where its chains end and begin', async () => {
    const chains = [...room.chains.keys()]
    const reader = counting(database.db)
    expect(await tipsOf(reader, nid, [...chains, depth + 1])).toEqual(
      new Map([...chains.map((chain) => [chain, length] as const), [depth + 1, 0]]),
    )
    expect(await lastChain(reader, [nid, 999])).toEqual(
      new Map([
        [nid, depth],
        [999, 0],
      ]),
    )
    expect(reader.trips).toBe(2)
    const parents = [...room.chains].flatMap(([chain, { parent }]) => (parent ? [[chain, parent] as const] : []))
    expect(await getChainParents(database.db, nid)).toEqual(new Map(parents))
  })

  it('tells every value of a key', async () => {
    const history = await getKeyHistory(database.db, nid, [3])
    const expected = [...room.chains].flatMap(([chain, { changes }]) =>
      changes.flatMap(([key_id, event_nid], index) =>
        key_id === 3 ? [{ key_id, chain, seq: index + 1, event_nid }] : [],
      ),
    )
    expect(history).toEqual(expected)
  })

  it('is the same with checkpoints here and there, on branches and where they begin', async () => {
    const some = points.filter((_, index) => index % 7 === 3)
    for (const point of some) await room.checkpoint(database.db, point)
    await room.checkpoint(database.db, { chain: depth, seq: 0 })
    await expectSameEverywhere(room, points)
  })
})

describe('many rooms at once', () => {
  const rooms = Array.from({ length: 30 }, (_, index) => ForkedRoom.deep(100 + index, index % 5, 9, KEYS))
  beforeAll(async () => {
    for (const room of rooms) await room.write(database.db)
    await rooms[4]!.checkpoint(database.db, { chain: 2, seq: 4 })
  })

  it('are loaded in one round trip, each where it stands', async () => {
    const heads = new Map(rooms.map((room) => [room.nid, { chain: room.chains.size - 1, seq: 9 }]))
    const reader = counting(database.db)
    const states = await loadStates(reader, heads)
    expect(reader.trips).toBe(1)
    expect(states.size).toBe(rooms.length)
    for (const room of rooms) {
      expect(sorted(entriesOf(states.get(room.nid)!))).toEqual(sorted(room.state(heads.get(room.nid)!)))
    }
  })

  it('are loaded by their rooms alone, with the points where these stand', async () => {
    const heads = new Map(rooms.map((room, index) => [room.nid, { chain: room.chains.size - 1, seq: index % 10 }]))
    const columns = 'room_nid, room_id, room_version, head_version, extremities, depth, last_pos, last_nid, notifiable'
    for (const [nid, { chain, seq }] of heads) {
      const values = [nid, `!${nid}`, chain, seq]
      const text = `INSERT INTO room (${columns}, state_chain, state_seq) VALUES ($1, $2, '12', 1, '{}', 1, 1, 1, 0, $3, $4)`
      await database.db.query(text, values)
    }
    const reader = counting(database.db)
    const states = await loadCurrentStates(reader, [...heads.keys(), 998])
    expect(reader.trips).toBe(1)
    expect(states.size).toBe(rooms.length)
    for (const room of rooms) {
      const { chain, seq, state } = states.get(room.nid)!
      expect({ chain, seq }).toEqual(heads.get(room.nid))
      expect(sorted(entriesOf(state))).toEqual(sorted(room.state({ chain, seq })))
    }
    expect(await loadCurrentStates(database.db, [])).toEqual(new Map())
  })

  it('are none when none is asked for, and empty where nothing was ever set', async () => {
    expect(await loadStates(database.db, new Map())).toEqual(new Map())
    expect((await loadState(database.db, 998, { chain: 0, seq: 0 })).size).toBe(0)
    expect(await getKeysAt(database.db, 998, { chain: 0, seq: 0 }, [0])).toEqual(new Map())
  })
})

it('knows how much lies between a point and the nearest checkpoint', async () => {
  const room = ForkedRoom.deep(50, 6, 10, KEYS)
  await room.write(database.db)
  const branchPoint = (chain: number) => room.chains.get(chain)!.parent!.seq
  const head = { chain: 6, seq: 8 }
  const all = 8 + [6, 5, 4, 3, 2, 1].reduce((sum, chain) => sum + branchPoint(chain), 0)
  expect(await distanceToCheckpoint(database.db, 50, head)).toEqual({ changes: all, chains: 7 })
  await room.checkpoint(database.db, { chain: 4, seq: branchPoint(5) })
  expect(await distanceToCheckpoint(database.db, 50, head)).toEqual({ changes: 8 + branchPoint(6), chains: 3 })
  await room.checkpoint(database.db, head)
  expect(await distanceToCheckpoint(database.db, 50, head)).toEqual({ changes: 0, chains: 1 })
})

it('refuses a point on a chain that is not there', async () => {
  await expect(loadState(database.db, 1, { chain: 77, seq: 1 })).rejects.toThrow('state chain 77 has no parent')
})
