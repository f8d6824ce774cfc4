import { groupBy } from '../core/group-by.ts'
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

/** The state keys of rooms. */
export function getStateKeys(
  reader: Reader,
  roomNids: readonly number[],
): Promise<(StateKeyRow & { readonly room_nid: number })[]> {
  return reader.query('SELECT room_nid, key_id, type, state_key FROM state_key WHERE room_nid = ANY($1::bigint[])', [
    roomNids,
  ])
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

export interface RoomState {
  readonly state: StateMap
  /** The change after which the whole state was last written; 0 when it never was. */
  readonly checkpointSeq: number
}

/** The states of many rooms, each at a point, in two queries for all that are on their first chain. */
export async function loadStates(
  reader: Reader,
  points: ReadonlyMap<number, StatePoint>,
): Promise<Map<number, RoomState>> {
  const found = new Map<number, RoomState>()
  const straight = [...points].filter(([, { chain }]) => chain === 0)
  const roomNids = straight.map(([roomNid]) => roomNid)
  const seqs = straight.map(([, { seq }]) => seq)
  const checkpoints = await reader.query<{ room_nid: number; seq: number; entries: Buffer }>(
    `SELECT DISTINCT ON (c.room_nid) c.room_nid, c.seq, c.entries
     FROM unnest($1::bigint[], $2::int[]) AS point (room_nid, seq)
     JOIN state_checkpoint c ON c.room_nid = point.room_nid AND c.chain = 0 AND c.seq <= point.seq
     ORDER BY c.room_nid, c.seq DESC`,
    [roomNids, seqs],
  )
  for (const roomNid of roomNids) found.set(roomNid, { state: EMPTY_STATE, checkpointSeq: 0 })
  for (const { room_nid, seq, entries } of checkpoints) {
    found.set(room_nid, { state: unpackState(entries), checkpointSeq: seq })
  }
  const changes = await reader.query<ChangeRow & { room_nid: number }>(
    `SELECT c.room_nid, c.key_id, c.event_nid FROM unnest($1::bigint[], $2::int[], $3::int[]) AS stretch (room_nid, after, seq)
     JOIN state_change c ON c.room_nid = stretch.room_nid AND c.chain = 0 AND c.seq > stretch.after AND c.seq <= stretch.seq
     ORDER BY c.room_nid, c.seq`,
    [roomNids, roomNids.map((roomNid) => found.get(roomNid)!.checkpointSeq), seqs],
  )
  for (const [roomNid, some] of groupBy(changes, (change) => change.room_nid)) {
    const { state: start, checkpointSeq } = found.get(roomNid)!
    const state = some.reduce((map, { key_id, event_nid }) => setState(map, key_id, event_nid), start)
    found.set(roomNid, { state, checkpointSeq })
  }
  for (const [roomNid, point] of points) {
    if (point.chain !== 0) found.set(roomNid, { state: await loadState(reader, roomNid, point), checkpointSeq: 0 })
  }
  return found
}

export async function saveCheckpoint(tx: Tx, roomNid: number, point: StatePoint, state: StateMap): Promise<void> {
  await tx.query(
    'INSERT INTO state_checkpoint (room_nid, chain, seq, entries) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING',
    [roomNid, point.chain, point.seq, packState(state)],
  )
}
