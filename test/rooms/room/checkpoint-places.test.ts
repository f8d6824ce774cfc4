import { pino } from 'pino'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { ByteBudget } from '../../../src/core/byte-budget.ts'
import type { RoomId } from '../../../src/core/ids.ts'
import { roomVersion } from '../../../src/core/room-version.ts'
import { buildState } from '../../../src/core/state/trie.ts'
import { createCheckpoints } from '../../../src/domain/rooms/room/checkpoints.ts'
import { createEventCache } from '../../../src/domain/rooms/room/event-cache.ts'
import { emptyRoom, type Room } from '../../../src/domain/rooms/room/room.ts'
import type { StatePoint } from '../../../src/store/events/state.ts'
import { ForkedRoom } from '../../store/events/forked-room.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { waitUntil } from '../../support/wait.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.drop())

const stateOf = (room: ForkedRoom, point: StatePoint) => {
  const values: number[] = []
  const entries = room.state(point)
  for (let key = 0; key <= Math.max(0, ...entries.keys()); key++) values.push(entries.get(key) ?? 0)
  return buildState(values)
}

function inMemory(log: ForkedRoom): Room {
  const events = createEventCache({ db: database.db, budget: new ByteBudget(1_000) })
  return emptyRoom({ nid: log.nid, id: `!${log.nid}` as RoomId, version: roomVersion('12')!, events })
}

async function written(roomNid: number): Promise<string[]> {
  const rows = await database.db.query<StatePoint>(
    'SELECT chain, seq FROM state_checkpoint WHERE room_nid = $1 ORDER BY chain, seq',
    [roomNid],
  )
  return rows.map(({ chain, seq }) => `${chain}:${seq}`)
}

it('a chain that is many branches away from a checkpoint gets one, and one that is near gets none', async () => {
  const checkpoints = createCheckpoints({ db: database.db, log: pino({ level: 'silent' }) })
  const [near, far] = [ForkedRoom.deep(1, 15, 4, 10), ForkedRoom.deep(2, 16, 4, 10)] as const
  for (const log of [near, far]) {
    await log.write(database.db)
    const point = { chain: log.chains.size - 1, seq: 4 }
    const room = inMemory(log)
    room.committed = { ...room.committed, ...point, state: stateOf(log, point) }
    checkpoints.consider(room)
    checkpoints.consider(room)
  }
  await waitUntil('a checkpoint of the far chain', async () => (await written(2)).length > 0)
  expect(await written(2)).toEqual(['16:4'])
  expect(await written(1)).toEqual([])
})

it('comes after a thousand changes, on whatever chain the room is by then', async () => {
  const checkpoints = createCheckpoints({ db: database.db, log: pino({ level: 'silent' }) })
  const log = new ForkedRoom(3)
  const room = inMemory(log)
  let eventNid = 0
  const at = async (chain: number, changes: number, expected: readonly string[]) => {
    const added = Array.from({ length: changes }, () => [++eventNid % 10, eventNid] as const)
    const point = log.change(chain, ...added)
    await database.db.query(`INSERT INTO state_change SELECT 3, $1, n, 0, n FROM generate_series($2::int, $3::int) n`, [
      chain,
      point.seq - changes + 1,
      point.seq,
    ])
    room.committed = { ...room.committed, ...point, state: stateOf(log, point) }
    checkpoints.consider(room)
    await waitUntil(`checkpoints ${expected}`, async () => String(await written(3)) === String(expected))
  }
  await at(0, 999, [])
  await at(0, 1, ['0:1000'])
  await at(0, 900, ['0:1000'])
  const branch = log.branch({ chain: 0, seq: 1900 })
  await database.db.query('INSERT INTO state_chain VALUES (3, $1, 0, 1900)', [branch])
  await at(branch, 99, ['0:1000'])
  await at(branch, 1, ['0:1000', '1:100'])
  await at(0, 100, ['0:1000', '0:2000', '1:100'])
  await at(branch, 999, ['0:1000', '0:2000', '1:100'])
  await at(branch, 1, ['0:1000', '0:2000', '1:100', '1:1100'])
})
