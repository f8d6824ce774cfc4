import type { EventId, RoomId, ServerName } from '../../core/ids.ts'
import type { Reader, Tx } from '../db/db.ts'
import type { StatePoint } from '../events/state.ts'

// Tables: room_filling, held_event, held_receipt, state_change, room_member; reads room, event

export interface PartialStateRow {
  readonly room_nid: number
  readonly room_id: RoomId
  readonly resident: ServerName
  readonly servers: readonly ServerName[]
  readonly join_event_id: EventId
  readonly since: number
  readonly failures: number
  readonly last_failure: string | null
  readonly filled_at: number | null
}

export interface HeldRow {
  readonly held_nid: number
  readonly origin: ServerName
  readonly json: string
}

const COLUMNS = `f.room_nid, room.room_id, f.resident, f.servers, f.join_event_id, f.since, f.failures, f.last_failure, f.filled_at`

/** Those whose join was never written are left out. */
export function getPartialStateRooms(reader: Reader): Promise<PartialStateRow[]> {
  return reader.query(`SELECT ${COLUMNS} FROM room_filling f JOIN room USING (room_nid)`)
}

export async function findPartialState(reader: Reader, roomNid: number): Promise<PartialStateRow | undefined> {
  const [row] = await reader.query<PartialStateRow>(
    `SELECT ${COLUMNS} FROM room_filling f JOIN room USING (room_nid) WHERE f.room_nid = $1`,
    [roomNid],
  )
  return row
}

/** The chain of a partial-state join whose members have not been fetched. */
export async function unfilledChain(reader: Reader, roomNid: number): Promise<number | undefined> {
  const [row] = await reader.query<{ state_chain: number }>(
    `SELECT state_chain FROM room_filling f JOIN event ON event_id = join_event_id
     WHERE f.room_nid = $1 AND coalesce(filled_at, 0) = 0`,
    [roomNid],
  )
  return row?.state_chain
}

export async function insertPartialState(
  tx: Tx,
  row: Pick<PartialStateRow, 'room_nid' | 'resident' | 'servers' | 'join_event_id' | 'since'>,
): Promise<void> {
  await tx.query(
    `INSERT INTO room_filling (room_nid, resident, servers, join_event_id, since) VALUES ($1, $2, $3, $4, $5)
     ON CONFLICT (room_nid) DO UPDATE SET resident = EXCLUDED.resident, servers = EXCLUDED.servers,
       join_event_id = EXCLUDED.join_event_id, since = EXCLUDED.since, failures = 0, last_failure = NULL, filled_at = NULL`,
    [row.room_nid, row.resident, row.servers, row.join_event_id, row.since],
  )
}

export async function noteFailure(tx: Tx, roomNid: number, failures: number, reason: string): Promise<void> {
  await tx.query('UPDATE room_filling SET failures = $2, last_failure = $3 WHERE room_nid = $1', [
    roomNid,
    failures,
    reason,
  ])
}

/** The room was joined again with its full state, so this resync need not announce members. */
export async function setSuperseded(tx: Tx, roomNid: number): Promise<void> {
  await tx.query(
    `UPDATE room_filling SET filled_at = 0, servers = '{}', failures = 0, last_failure = NULL WHERE room_nid = $1`,
    [roomNid],
  )
}

/**
 * Removes the changes past the end of a chain and their memberships: an interrupted resync wrote them. Gives whether there were any.
 */
export async function removeResyncedPart(tx: Tx, roomNid: number, end: StatePoint): Promise<boolean> {
  const [row] = await tx.query<{ any: boolean }>(
    `WITH gone AS (DELETE FROM state_change WHERE room_nid = $1 AND chain = $2 AND seq > $3 RETURNING event_nid),
     members AS (DELETE FROM room_member m USING gone WHERE m.room_nid = $1 AND m.event_nid = gone.event_nid)
     SELECT EXISTS (SELECT FROM gone) AS any`,
    [roomNid, end.chain, end.seq],
  )
  return row!.any
}

export async function removePartialState(tx: Tx, roomNid: number): Promise<void> {
  await tx.query('DELETE FROM room_filling WHERE room_nid = $1', [roomNid])
  await removeAllHeld(tx, roomNid)
}

export async function removeAllHeld(tx: Tx, roomNid: number): Promise<void> {
  await tx.query('DELETE FROM held_event WHERE room_nid = $1', [roomNid])
  await tx.query('DELETE FROM held_receipt WHERE room_nid = $1', [roomNid])
}

export async function insertHeld(tx: Tx, roomNid: number, origin: ServerName, jsons: readonly string[]): Promise<void> {
  await tx.query(
    `INSERT INTO held_event (room_nid, origin, json)
     SELECT $1, $2, json FROM unnest($3::text[]) WITH ORDINALITY AS held (json, place) ORDER BY place`,
    [roomNid, origin, jsons],
  )
}

/** The next held events of a room, in the order in which they came. */
export function getHeld(reader: Reader, roomNid: number, limit: number): Promise<HeldRow[]> {
  return reader.query('SELECT held_nid, origin, json FROM held_event WHERE room_nid = $1 ORDER BY held_nid LIMIT $2', [
    roomNid,
    limit,
  ])
}

/**
 * Held events that may set a state key, at most so many of each server, in the order in which they came. The search is by text, so the
 * result may hold other events too.
 */
export function getHeldState(
  reader: Reader,
  roomNid: number,
  [type, stateKey]: readonly [type: string, stateKey: string],
  atMost: { readonly ofAServer: number; readonly all: number },
): Promise<HeldRow[]> {
  return reader.query(
    `SELECT held_nid, origin, json FROM (
       SELECT *, row_number() OVER (PARTITION BY origin ORDER BY held_nid DESC) AS place FROM held_event
       WHERE room_nid = $1 AND strpos(json, $2) > 0 AND strpos(json, $3) > 0
     ) AS newest WHERE place <= $4 ORDER BY place, held_nid LIMIT $5`,
    [
      roomNid,
      `"type":${JSON.stringify(type)}`,
      `"state_key":${JSON.stringify(stateKey)}`,
      atMost.ofAServer,
      atMost.all,
    ],
  )
}

export async function removeHeld(tx: Tx, heldNids: readonly number[]): Promise<void> {
  await tx.query('DELETE FROM held_event WHERE held_nid = ANY($1::bigint[])', [heldNids])
}

export function countHeld(
  reader: Reader,
): Promise<
  { readonly room_nid: number; readonly origin: ServerName; readonly count: number; readonly bytes: number }[]
> {
  return reader.query(
    `SELECT room_nid, origin, count(*)::int AS count, sum(octet_length(json))::float8 AS bytes
     FROM held_event GROUP BY room_nid, origin`,
  )
}
