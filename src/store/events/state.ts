import { buildState, packState, type StateMap, unpackValue, unpackValues } from '../../core/state/trie.ts'
import type { Reader, Tx } from '../db/db.ts'

// Tables: state_key, state_change, state_chain, state_checkpoint; read: room

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

/** The state keys of rooms. A row for each room is read sooner than one for each key. */
export async function getStateKeys(
  reader: Reader,
  roomNids: readonly number[],
): Promise<Map<number, readonly StateKeyRow[]>> {
  const rows = await reader.query<{ room_nid: number; ids: number[]; types: string; keys: string }>(
    `SELECT room_nid, array_agg(key_id) AS ids, array_to_json(array_agg(type))::text AS types,
       array_to_json(array_agg(state_key))::text AS keys
     FROM state_key WHERE room_nid = ANY($1::bigint[]) GROUP BY room_nid`,
    [roomNids],
  )
  return new Map(rows.map(({ room_nid, ids, types, keys }) => [room_nid, stateKeyRows(ids, types, keys)]))
}

function stateKeyRows(ids: readonly number[], types: string, keys: string): StateKeyRow[] {
  const [typeOf, keyOf] = [JSON.parse(types) as string[], JSON.parse(keys) as string[]]
  return ids.map((key_id, index) => ({ key_id, type: typeOf[index]!, state_key: keyOf[index]! }))
}

const checkpointBefore = (point: string) =>
  `(SELECT max(k.seq) FROM state_checkpoint k
    WHERE k.room_nid = ${point}.room_nid AND k.chain = ${point}.chain AND k.seq <= ${point}.seq)`

/** Finds the parent of a chain by index; the LIMIT keeps the planner from other joins when there are many chains. */
const PARENT = `LATERAL (SELECT parent_chain AS chain, parent_seq AS seq FROM state_chain
  WHERE room_nid = line.room_nid AND chain = line.chain LIMIT 1)`

/**
 * The stretches of the state log that lead to points, each with the last change of its chain that counts: from the point back to the
 * nearest checkpoint (`base`) or to the beginning of chain 0.
 */
const lineFrom = (points: string) => `line (room_nid, depth, chain, seq, base) AS (
  SELECT point.room_nid, 0, point.chain, point.seq, ${checkpointBefore('point')} FROM ${points} AS point (room_nid, chain, seq)
  UNION ALL
  SELECT room_nid, depth, chain, seq, ${checkpointBefore('up')} FROM (
    SELECT line.room_nid, line.depth + 1 AS depth, parent.chain, parent.seq FROM line CROSS JOIN ${PARENT} parent
    WHERE line.base IS NULL AND line.chain <> 0
  ) up)`

/** From points that are given. */
const LINE = lineFrom('unnest($1::bigint[], $2::int[], $3::int[])')

/** From the points where rooms stand. */
const LINE_OF_ROOMS = lineFrom('(SELECT room_nid, state_chain, state_seq FROM room WHERE room_nid = ANY($1::bigint[]))')

interface Stretch {
  readonly room_nid: number
  readonly chain: number
  readonly seq: number
  readonly base: number | null
  readonly entries: Buffer | null
  readonly keys: number[] | null
  readonly nids: number[] | null
}

const stretchesOf = (line: string) => `WITH RECURSIVE ${line}
  SELECT line.room_nid, line.chain, line.seq, line.base, changes.keys, changes.nids,
    (SELECT entries FROM state_checkpoint k WHERE k.room_nid = line.room_nid AND k.chain = line.chain AND k.seq = line.base)
  FROM line CROSS JOIN LATERAL (
    SELECT array_agg(key_id ORDER BY c.seq) AS keys, array_agg(event_nid ORDER BY c.seq) AS nids FROM state_change c
    WHERE c.room_nid = line.room_nid AND c.chain = line.chain AND c.seq > coalesce(line.base, 0) AND c.seq <= line.seq
  ) changes ORDER BY line.room_nid, line.depth DESC`

const STRETCHES = stretchesOf(LINE)
const STRETCHES_OF_ROOMS = stretchesOf(LINE_OF_ROOMS)

/** The states of many rooms, each at a point, in one query. */
export async function loadStates(
  reader: Reader,
  points: ReadonlyMap<number, StatePoint>,
): Promise<Map<number, StateMap>> {
  const wanted = [...points.values()]
  const parameters = [[...points.keys()], wanted.map(({ chain }) => chain), wanted.map(({ seq }) => seq)]
  const found = new Map<number, StateMap>()
  for (const [roomNid, stretches] of byRoom(await reader.query<Stretch>(STRETCHES, parameters))) {
    found.set(roomNid, replay(roomNid, stretches))
  }
  return found
}

export interface CurrentState extends StatePoint {
  readonly state: StateMap
}

/** The current states of many rooms, and the points where they stand, in one query. */
export async function loadCurrentStates(
  reader: Reader,
  roomNids: readonly number[],
): Promise<Map<number, CurrentState>> {
  const found = new Map<number, CurrentState>()
  for (const [roomNid, stretches] of byRoom(await reader.query<Stretch>(STRETCHES_OF_ROOMS, [roomNids]))) {
    const { chain, seq } = stretches.at(-1)!
    found.set(roomNid, { chain, seq, state: replay(roomNid, stretches) })
  }
  return found
}

function* byRoom(stretches: readonly Stretch[]): Generator<[roomNid: number, stretches: readonly Stretch[]]> {
  for (let first = 0, end = 0; first < stretches.length; first = end) {
    const { room_nid: roomNid } = stretches[first]!
    while (stretches[end]?.room_nid === roomNid) end++
    yield [roomNid, stretches.slice(first, end)]
  }
}

/** The state at a point: the nearest checkpoint and the changes since, in one query. */
export async function loadState(reader: Reader, roomNid: number, point: StatePoint): Promise<StateMap> {
  return (await loadStates(reader, new Map([[roomNid, point]]))).get(roomNid)!
}

/** Oldest stretch first. */
function replay(roomNid: number, stretches: readonly Stretch[]): StateMap {
  const { chain, base, entries } = stretches[0]!
  if (base === null && chain !== 0) throw new Error(`room ${roomNid}: state chain ${chain} has no parent`)
  const values = entries === null ? [] : unpackValues(entries)
  for (const { keys, nids } of stretches) {
    if (keys === null || nids === null) continue
    for (const [index, key] of keys.entries()) {
      while (values.length < key) values.push(0)
      values[key] = nids[index]!
    }
  }
  return buildState(values)
}

/** The cost of reading a point: the changes since the nearest checkpoint, and the number of chains they are on. */
export async function distanceToCheckpoint(
  reader: Reader,
  roomNid: number,
  { chain, seq }: StatePoint,
): Promise<{ readonly changes: number; readonly chains: number }> {
  const [row] = await reader.query<{ changes: number; chains: number }>(
    `WITH RECURSIVE ${LINE} SELECT sum(seq - coalesce(base, 0)) AS changes, count(*) AS chains FROM line`,
    [[roomNid], [chain], [seq]],
  )
  return row!
}

/**
 * The last change of a key on a chain up to a point. It is written as a range, which only the index by key can serve. With two equalities
 * the planner, which does not know the length of the chain, might use the index by chain and read all of it.
 */
const newestChange = (point: string) =>
  `(SELECT CASE WHEN newest.key_id = ${point}.key_id AND newest.chain = ${point}.chain THEN newest.event_nid END FROM (
      SELECT c.key_id, c.chain, c.event_nid FROM state_change c
      WHERE c.room_nid = $1 AND (c.key_id, c.chain, c.seq) <= (${point}.key_id, ${point}.chain, ${point}.seq)
      ORDER BY c.key_id DESC, c.chain DESC, c.seq DESC LIMIT 1) newest)`

/**
 * For each key, the first chain on the way back that sets it; a checkpoint ends the search. This costs an index probe per key and chain,
 * and reads only the bytes of that key from a checkpoint.
 */
const KEYS_ON_BRANCH = `WITH RECURSIVE line (room_nid, key_id, chain, seq, event_nid, base) AS (
    SELECT room_nid, key_id, chain, seq, ${newestChange('point')}, ${checkpointBefore('point')}
    FROM (SELECT $1::bigint AS room_nid, key_id, $2::int AS chain, $3::int AS seq FROM unnest($4::int[]) AS key_id) point
    UNION ALL
    SELECT room_nid, key_id, chain, seq, ${newestChange('up')}, ${checkpointBefore('up')} FROM (
      SELECT line.room_nid, line.key_id, parent.chain, parent.seq FROM line CROSS JOIN ${PARENT} parent
      WHERE line.event_nid IS NULL AND line.base IS NULL AND line.chain <> 0
    ) up)
  SELECT key_id, event_nid, CASE WHEN event_nid IS NULL THEN
    (SELECT substring(entries FROM 2 + line.key_id * width FOR width) FROM (
       SELECT entries, get_byte(substring(entries FROM 1 FOR 1), 0) AS width FROM state_checkpoint k
       WHERE k.room_nid = $1 AND k.chain = line.chain AND k.seq = line.base) checkpoint) END AS packed
  FROM line WHERE event_nid IS NOT NULL OR base IS NOT NULL`

const KEYS_ON_CHAIN_0 = `SELECT key_id, event_nid, NULL::bytea AS packed FROM (
    SELECT key_id, ${newestChange('point')} AS event_nid
    FROM (SELECT key_id, 0 AS chain, $2::int AS seq FROM unnest($3::int[]) AS key_id) point
  ) found WHERE event_nid IS NOT NULL`

/** The values of some keys at a point, without unset ones. For a few keys of a large state. */
export async function getKeysAt(
  reader: Reader,
  roomNid: number,
  { chain, seq }: StatePoint,
  keyIds: readonly number[],
): Promise<Map<number, number>> {
  const found = await reader.query<{ key_id: number; event_nid: number | null; packed: Buffer | null }>(
    chain === 0 ? KEYS_ON_CHAIN_0 : KEYS_ON_BRANCH,
    chain === 0 ? [roomNid, seq, keyIds] : [roomNid, chain, seq, keyIds],
  )
  const values = new Map<number, number>()
  for (const { key_id, event_nid, packed } of found) {
    const value = event_nid ?? (packed === null ? 0 : unpackValue(packed))
    if (value !== 0) values.set(key_id, value)
  }
  return values
}

export interface KeyChange {
  readonly key_id: number
  readonly event_nid: number
  readonly chain: number
  readonly seq: number
}

/** Every value that some keys ever had, oldest first: for questions such as "was this user a member then". */
export async function getKeyHistory(reader: Reader, roomNid: number, keyIds: readonly number[]): Promise<KeyChange[]> {
  // Sorted here, because with an ORDER BY the planner might read the whole log in that order.
  const changes = await reader.query<KeyChange>(
    'SELECT key_id, chain, seq, event_nid FROM state_change WHERE room_nid = $1 AND key_id = ANY($2::int[])',
    [roomNid, keyIds],
  )
  return changes.sort((a, b) => a.chain - b.chain || a.seq - b.seq)
}

/** The point at which each chain of a room branches off. Chain 0 has no parent. */
export async function getChainParents(reader: Reader, roomNid: number): Promise<Map<number, StatePoint>> {
  const rows = await reader.query<{ chain: number; parent_chain: number; parent_seq: number }>(
    'SELECT chain, parent_chain, parent_seq FROM state_chain WHERE room_nid = $1 AND parent_chain >= 0',
    [roomNid],
  )
  return new Map(rows.map((row) => [row.chain, { chain: row.parent_chain, seq: row.parent_seq }]))
}

/** The number of the last change of some chains of a room; 0 for one without changes. */
export async function tipsOf(reader: Reader, roomNid: number, chains: readonly number[]): Promise<Map<number, number>> {
  const rows = await reader.query<{ chain: number; seq: number }>(
    `SELECT chain, coalesce((SELECT max(c.seq) FROM state_change c WHERE c.room_nid = $1 AND c.chain = wanted.chain), 0) AS seq
     FROM unnest($2::int[]) AS wanted (chain)`,
    [roomNid, chains],
  )
  return new Map(rows.map(({ chain, seq }) => [chain, seq]))
}

/** The highest chain number of each room; 0 if the room never forked. */
export async function lastChain(reader: Reader, roomNids: readonly number[]): Promise<Map<number, number>> {
  const rows = await reader.query<{ room_nid: number; chain: number }>(
    `SELECT room_nid, coalesce((SELECT max(c.chain) FROM state_chain c WHERE c.room_nid = wanted.room_nid), 0) AS chain
     FROM unnest($1::bigint[]) AS wanted (room_nid)`,
    [roomNids],
  )
  return new Map(rows.map(({ room_nid, chain }) => [room_nid, chain]))
}

export async function saveCheckpoint(tx: Tx, roomNid: number, point: StatePoint, state: StateMap): Promise<void> {
  await tx.query(
    'INSERT INTO state_checkpoint (room_nid, chain, seq, entries) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING',
    [roomNid, point.chain, point.seq, packState(state)],
  )
}
