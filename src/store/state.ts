import { EMPTY_STATE, packState, type StateMap, setState, unpackState } from '../core/state/trie.ts'
import type { Reader, Tx } from './db.ts'

// Tables: state_key, state_change, state_chain, state_checkpoint

/** A point in the history of a room's state: after change number `seq` of `chain`. */
export interface StatePoint {
  readonly chain: number
  readonly seq: number
}

export interface StateKeyRow {
  readonly key_id: number
  readonly type: string
  readonly state_key: string
}

interface ChangeRow {
  readonly key_id: number
  readonly event_nid: number
}

export function getStateKeys(reader: Reader, roomNid: number): Promise<StateKeyRow[]> {
  return reader.query<StateKeyRow>('SELECT key_id, type, state_key FROM state_key WHERE room_nid = $1', [roomNid])
}

/** The stretches of log that lead to a point, oldest first: each chain from where the next branches off it. */
async function ancestry(reader: Reader, roomNid: number, point: StatePoint): Promise<StatePoint[]> {
  const path = [point]
  while (path[0]!.chain !== 0) {
    const [row] = await reader.query<{ parent_chain: number; parent_seq: number }>(
      'SELECT parent_chain, parent_seq FROM state_chain WHERE room_nid = $1 AND chain = $2',
      [roomNid, path[0]!.chain],
    )
    if (!row) throw new Error(`room ${roomNid}: state chain ${path[0]!.chain} has no parent`)
    path.unshift({ chain: row.parent_chain, seq: row.parent_seq })
  }
  return path
}

/** The state at a point: the nearest checkpoint and the changes since. */
export async function loadState(reader: Reader, roomNid: number, point: StatePoint): Promise<StateMap> {
  let state = EMPTY_STATE
  for (const { chain, seq } of await ancestry(reader, roomNid, point)) {
    const [checkpoint] = await reader.query<{ seq: number; entries: Buffer }>(
      'SELECT seq, entries FROM state_checkpoint WHERE room_nid = $1 AND chain = $2 AND seq <= $3 ORDER BY seq DESC LIMIT 1',
      [roomNid, chain, seq],
    )
    if (checkpoint) state = unpackState(checkpoint.entries)
    const changes = await reader.query<ChangeRow>(
      'SELECT key_id, event_nid FROM state_change WHERE room_nid = $1 AND chain = $2 AND seq > $3 AND seq <= $4 ORDER BY seq',
      [roomNid, chain, checkpoint?.seq ?? 0, seq],
    )
    for (const { key_id, event_nid } of changes) state = setState(state, key_id, event_nid)
  }
  return state
}

export interface KeyChange extends ChangeRow {
  readonly chain: number
  readonly seq: number
}

/** Every value that some keys ever had in a chain, oldest first: for questions such as "was this user a member then". */
export function getKeyHistory(reader: Reader, roomNid: number, keyIds: readonly number[]): Promise<KeyChange[]> {
  return reader.query<KeyChange>(
    `SELECT key_id, chain, seq, event_nid FROM state_change WHERE room_nid = $1 AND key_id = ANY($2::int[])
     ORDER BY chain, seq`,
    [roomNid, keyIds],
  )
}

/** Where the chains of a room branch off from others: the point that each continues. Chain 0 continues none. */
export async function getChainParents(reader: Reader, roomNid: number): Promise<Map<number, StatePoint>> {
  const rows = await reader.query<{ chain: number; parent_chain: number; parent_seq: number }>(
    'SELECT chain, parent_chain, parent_seq FROM state_chain WHERE room_nid = $1',
    [roomNid],
  )
  return new Map(rows.map((row) => [row.chain, { chain: row.parent_chain, seq: row.parent_seq }]))
}

/** The values of some keys at a point, as far as they have any: for when a few are wanted of a large state. */
export async function getKeysAt(
  reader: Reader,
  roomNid: number,
  point: StatePoint,
  keyIds: readonly number[],
): Promise<Map<number, number>> {
  const values = new Map<number, number>()
  for (const { chain, seq } of await ancestry(reader, roomNid, point)) {
    const rows = await reader.query<ChangeRow>(
      `SELECT DISTINCT ON (key_id) key_id, event_nid FROM state_change
       WHERE room_nid = $1 AND key_id = ANY($2::int[]) AND chain = $3 AND seq <= $4 ORDER BY key_id, seq DESC`,
      [roomNid, keyIds, chain, seq],
    )
    for (const { key_id, event_nid } of rows) values.set(key_id, event_nid)
  }
  for (const [keyId, nid] of values) if (nid === 0) values.delete(keyId)
  return values
}

/** The number of the newest checkpoint of a chain, 0 when it has none. */
export async function lastCheckpoint(reader: Reader, roomNid: number, chain: number): Promise<number> {
  const [row] = await reader.query<{ seq: number | null }>(
    'SELECT max(seq) AS seq FROM state_checkpoint WHERE room_nid = $1 AND chain = $2',
    [roomNid, chain],
  )
  return row?.seq ?? 0
}

export async function saveCheckpoint(tx: Tx, roomNid: number, point: StatePoint, state: StateMap): Promise<void> {
  await tx.query(
    'INSERT INTO state_checkpoint (room_nid, chain, seq, entries) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING',
    [roomNid, point.chain, point.seq, packState(state)],
  )
}
