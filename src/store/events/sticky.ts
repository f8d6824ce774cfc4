import type { Reader, Tx } from '../db/db.ts'

// Tables: sticky_event, event

/** An event that is sticky, and until when. */
export interface StickyWrite {
  readonly roomNid: number
  readonly eventNid: number
  readonly expiresAt: number
}

export interface StickyRow {
  readonly event_nid: number
  readonly room_nid: number
  readonly sender_nid: number
  readonly stream_pos: number
  readonly bytes: number
  readonly expires_at: number
}

/** All that are sticky after a moment, in the order of the stream; at most the newest of them. */
export async function stickyEventsAt(reader: Reader, now: number, atMost: number): Promise<StickyRow[]> {
  const rows = await reader.query<StickyRow>(
    `SELECT s.event_nid, s.room_nid, e.sender_nid, coalesce(e.stream_pos, e.event_nid) AS stream_pos,
       octet_length(e.json) AS bytes, s.expires_at
     FROM sticky_event s JOIN event e USING (event_nid)
     WHERE s.expires_at > $1 AND e.redacted_by IS NULL AND e.room_pos IS NOT NULL AND e.standing IS NULL
     ORDER BY stream_pos DESC LIMIT $2`,
    [now, atMost],
  )
  return rows.reverse()
}

/** Soft-failed events that would be sticky after a moment, the oldest first; at most the newest of them. */
export async function softFailedStickyAt(
  reader: Reader,
  now: number,
  atMost: number,
): Promise<Pick<StickyRow, 'event_nid' | 'room_nid' | 'expires_at'>[]> {
  const rows = await reader.query<Pick<StickyRow, 'event_nid' | 'room_nid' | 'expires_at'>>(
    `SELECT s.event_nid, s.room_nid, s.expires_at FROM sticky_event s JOIN event e USING (event_nid)
     WHERE s.expires_at > $1 AND e.redacted_by IS NULL AND e.standing = 'soft-failed'
     ORDER BY s.event_nid DESC LIMIT $2`,
    [now, atMost],
  )
  return rows.reverse()
}

/** Gives how many were removed. */
export async function forgetStickyEvents(tx: Tx, now: number, atMost: number): Promise<number> {
  const rows = await tx.query(
    `DELETE FROM sticky_event WHERE event_nid = ANY(ARRAY(
       SELECT event_nid FROM sticky_event WHERE expires_at <= $1 LIMIT $2)) RETURNING 1 AS one`,
    [now, atMost],
  )
  return rows.length
}
