import { type StateMap, unpackState } from '../../core/state/trie.ts'
import type { Reader } from '../db/db.ts'
import type { StatePoint } from '../events/state.ts'

// Tables: event, event_gap, state_change, state_chain, state_checkpoint

/** The number of events of each status in a room; accepted ones under `accepted`. */
export async function countByStanding(reader: Reader, roomNid: number): Promise<Map<string, number>> {
  const rows = await reader.query<{ standing: string; count: number }>(
    "SELECT coalesce(standing, 'accepted') AS standing, count(*) AS count FROM event WHERE room_nid = $1 GROUP BY 1",
    [roomNid],
  )
  return new Map(rows.map(({ standing, count }) => [standing, count]))
}

/** The missing events that events of the room refer to. */
export async function getGaps(reader: Reader, roomNid: number): Promise<string[]> {
  const rows = await reader.query<{ missing_id: string }>(
    'SELECT DISTINCT missing_id FROM event_gap WHERE room_nid = $1 ORDER BY missing_id',
    [roomNid],
  )
  return rows.map(({ missing_id }) => missing_id)
}

export interface LogSize {
  readonly branches: number
  readonly changes: number
  readonly checkpoints: number
}

export async function getLogSize(reader: Reader, roomNid: number): Promise<LogSize> {
  const [row] = await reader.query<LogSize>(
    `SELECT (SELECT count(*) FROM state_chain WHERE room_nid = $1) AS branches,
       (SELECT count(*) FROM state_change WHERE room_nid = $1) AS changes,
       (SELECT count(*) FROM state_checkpoint WHERE room_nid = $1) AS checkpoints`,
    [roomNid],
  )
  return row!
}

/** The numbers of all events of a room, of any status. */
export async function getEventNids(reader: Reader, roomNid: number): Promise<number[]> {
  const [row] = await reader.query<{ nids: number[] | null }>(
    'SELECT array_agg(event_nid ORDER BY event_nid) AS nids FROM event WHERE room_nid = $1',
    [roomNid],
  )
  return row!.nids ?? []
}

/** All changes of one chain in their order. */
export interface ChainLog {
  readonly chain: number
  readonly seqs: readonly number[]
  readonly keys: readonly number[]
  readonly nids: readonly number[]
}

export function readStateLog(reader: Reader, roomNid: number): Promise<ChainLog[]> {
  return reader.query<ChainLog>(
    `SELECT chain, array_agg(seq ORDER BY seq) AS seqs, array_agg(key_id ORDER BY seq) AS keys,
       array_agg(event_nid ORDER BY seq) AS nids FROM state_change WHERE room_nid = $1 GROUP BY chain`,
    [roomNid],
  )
}

export function getCheckpointPoints(reader: Reader, roomNid: number): Promise<StatePoint[]> {
  return reader.query<StatePoint>('SELECT chain, seq FROM state_checkpoint WHERE room_nid = $1 ORDER BY chain, seq', [
    roomNid,
  ])
}

export async function readCheckpoint(reader: Reader, roomNid: number, { chain, seq }: StatePoint): Promise<StateMap> {
  const [row] = await reader.query<{ entries: Buffer }>(
    'SELECT entries FROM state_checkpoint WHERE room_nid = $1 AND chain = $2 AND seq = $3',
    [roomNid, chain, seq],
  )
  return unpackState(row!.entries)
}
