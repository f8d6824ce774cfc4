import { type EventReference, type Pdu, referencedId } from '../../src/core/event/format.ts'
import type { EventId, RoomId, ServerName, UserId } from '../../src/core/ids.ts'
import { forEachState, type StateMap } from '../../src/core/state/trie.ts'
import type { Database } from '../../src/store/db/db.ts'
import type { Standing } from '../../src/store/events/events.ts'
import { getStateKeys, loadState, type StatePoint } from '../../src/store/events/state.ts'

/** An event as a server's database has it. */
export interface HeldEvent {
  readonly id: EventId
  readonly nid: number
  /** Null for accepted events. */
  readonly standing: Standing | null
  readonly reason: string | null
  readonly type: string
  readonly sender: UserId
  readonly prev: readonly EventId[]
  readonly isInTimeline: boolean
  readonly redactedBy: number | null
  readonly before: StatePoint
  readonly pdu: Pdu
}

/** All that a server's database says of a room. */
export interface RoomView {
  readonly roomNid: number
  readonly version: string
  readonly extremities: readonly EventId[]
  /** Event ids by `type` and `state_key`, as text. */
  readonly state: ReadonlyMap<string, EventId>
  /** `membership event_id` of everybody who ever had one. */
  readonly members: ReadonlyMap<UserId, string>
  readonly events: ReadonlyMap<EventId, HeldEvent>
  stateBefore(event: HeldEvent): Promise<ReadonlyMap<string, EventId>>
}

interface Row {
  readonly event_nid: number
  readonly event_id: EventId
  readonly standing: Standing | null
  readonly reason: string | null
  readonly room_pos: number | null
  readonly redacted_by: number | null
  readonly state_chain: number
  readonly state_seq: number
  readonly json: string
}

export async function viewRoom(db: Database, roomId: RoomId): Promise<RoomView | undefined> {
  const [room] = await db.query<{
    room_nid: number
    room_version: string
    extremities: number[]
    state_chain: number
    state_seq: number
  }>('SELECT room_nid, room_version, extremities, state_chain, state_seq FROM room WHERE room_id = $1', [roomId])
  if (!room) return undefined
  const { room_nid: roomNid } = room
  const [rows, keys, members, head] = await Promise.all([
    db.query<Row>(
      `SELECT event_nid, event_id, standing, reason, room_pos, redacted_by, state_chain, state_seq, json
       FROM event WHERE room_nid = $1 ORDER BY event_nid`,
      [roomNid],
    ),
    getStateKeys(db, [roomNid]),
    membersOf(db, roomNid),
    loadState(db, roomNid, { chain: room.state_chain, seq: room.state_seq }),
  ])
  const idOf = new Map(rows.map((row) => [row.event_nid, row.event_id]))
  const nameOf = new Map((keys.get(roomNid) ?? []).map((key) => [key.key_id, `${key.type} ${key.state_key}`]))
  const named = (state: StateMap): Map<string, EventId> => {
    const found = new Map<string, EventId>()
    forEachState(state, (key, nid) => found.set(nameOf.get(key)!, idOf.get(nid)!))
    return found
  }
  return {
    roomNid,
    version: room.room_version,
    extremities: room.extremities.map((nid) => idOf.get(nid)!),
    state: named(head),
    members,
    events: new Map(rows.map((row) => [row.event_id, heldEvent(row)])),
    stateBefore: async ({ before }) => named(await loadState(db, roomNid, before)),
  }
}

async function membersOf(db: Database, roomNid: number): Promise<Map<UserId, string>> {
  const rows = await db.query<{ user_id: UserId; membership: string; event_id: EventId }>(
    `SELECT user_id, membership, event_id FROM room_member JOIN matrix_user USING (user_nid) JOIN event USING (event_nid)
     WHERE room_member.room_nid = $1 ORDER BY user_id`,
    [roomNid],
  )
  return new Map(rows.map((row) => [row.user_id, `${row.membership} ${row.event_id}`]))
}

function heldEvent(row: Row): HeldEvent {
  const pdu = JSON.parse(row.json) as Pdu
  return {
    id: row.event_id,
    nid: row.event_nid,
    standing: row.standing,
    reason: row.reason,
    type: pdu.type,
    sender: pdu.sender,
    prev: pdu.prev_events.map((reference: EventReference) => referencedId(reference)),
    isInTimeline: row.room_pos !== null,
    redactedBy: row.redacted_by,
    before: { chain: row.state_chain, seq: row.state_seq },
    pdu,
  }
}

/** The memberships of a room as a server sees them: a query, for when the rest is not wanted. */
export async function memberships(db: Database, roomId: RoomId): Promise<Map<UserId, string>> {
  const rows = await db.query<{ user_id: UserId; membership: string }>(
    `SELECT user_id, membership FROM room_member JOIN matrix_user USING (user_nid) JOIN room USING (room_nid)
     WHERE room_id = $1 ORDER BY user_id`,
    [roomId],
  )
  return new Map(rows.map((row) => [row.user_id, row.membership]))
}

/** Events that users of a server made in a room since a number. */
export async function madeSince(
  db: Database,
  roomId: RoomId,
  server: ServerName,
  after: number,
): Promise<{ event_nid: number; event_id: EventId; json: string }[]> {
  return db.query(
    `SELECT event_nid, event_id, json FROM event JOIN room USING (room_nid) JOIN matrix_user ON user_nid = sender_nid
     WHERE room_id = $1 AND event_nid > $2 AND standing IS NULL AND user_id LIKE '%:' || $3 ORDER BY event_nid`,
    [roomId, after, server],
  )
}
