import type { EventId, RoomId } from '../../core/ids.ts'
import type { JsonOffence } from '../../core/json.ts'
import type { Reader, Tx } from '../db/db.ts'

// Table: delayed_event

export interface NewDelayedEvent {
  readonly delayId: string
  readonly userNid: number
  /** The request that scheduled it, so that a repeat schedules nothing. */
  readonly txn: { readonly tokenNid: number; readonly hash: string } | undefined
  readonly roomId: RoomId
  readonly type: string
  /** Undefined for a message event. */
  readonly stateKey: string | undefined
  /** JSON. */
  readonly content: string
  readonly offence: JsonOffence | undefined
  readonly ts: number | undefined
  readonly stickyMs: number | undefined
  readonly isUnlimited: boolean
  readonly delayMs: number
  readonly scheduledAt: number
}

export interface DelayedEventRow {
  readonly delay_id: string
  readonly user_nid: number
  readonly room_id: RoomId
  readonly type: string
  readonly state_key: string | null
  readonly content: string
  readonly offence: JsonOffence | null
  readonly ts: number | null
  readonly sticky_ms: number | null
  readonly is_unlimited: boolean
  readonly delay_ms: number
  readonly scheduled_at: number
  readonly due_at: number
  readonly finalised_at: number | null
  readonly event_id: EventId | null
  /** JSON. */
  readonly error: string | null
}

const COLUMNS =
  'delay_id, user_nid, room_id, type, state_key, content, offence, ts, is_unlimited, delay_ms, scheduled_at, due_at, finalised_at, event_id, error, sticky_ms'

export async function insertDelayedEvent(tx: Tx, event: NewDelayedEvent): Promise<void> {
  const { delayId, userNid, txn, roomId, type, stateKey, content, offence, ts, stickyMs } = event
  const { isUnlimited, delayMs, scheduledAt } = event
  await tx.query(
    `INSERT INTO delayed_event (delay_id, user_nid, txn_token, txn_hash, room_id, type, state_key, content, offence, ts,
       is_unlimited, delay_ms, scheduled_at, due_at, sticky_ms)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)`,
    [
      ...[delayId, userNid, txn?.tokenNid ?? null, txn?.hash ?? null, roomId, type, stateKey ?? null, content],
      ...[offence ?? null, ts ?? null, isUnlimited, delayMs, scheduledAt, scheduledAt + delayMs, stickyMs ?? null],
    ],
  )
}

export async function findDelayedEvent(reader: Reader, delayId: string): Promise<DelayedEventRow | undefined> {
  const [row] = await reader.query<DelayedEventRow>(`SELECT ${COLUMNS} FROM delayed_event WHERE delay_id = $1`, [
    delayId,
  ])
  return row
}

/** What a request has scheduled with this transaction id, by one of these logins of its device. */
export async function findDelayedByTxn(
  reader: Reader,
  tokenNids: readonly number[],
  hash: string,
): Promise<string | undefined> {
  const [row] = await reader.query<{ delay_id: string }>(
    'SELECT delay_id FROM delayed_event WHERE txn_token = ANY($1::bigint[]) AND txn_hash = $2 LIMIT 1',
    [tokenNids, hash],
  )
  return row?.delay_id
}

/** What a user has waiting, the first to be sent first. */
export function scheduledOf(reader: Reader, userNid: number): Promise<DelayedEventRow[]> {
  return reader.query<DelayedEventRow>(
    `SELECT ${COLUMNS} FROM delayed_event WHERE user_nid = $1 AND finalised_at IS NULL ORDER BY due_at, delay_id`,
    [userNid],
  )
}

export interface ScheduledSum {
  readonly events: number
  readonly bytes: number
  /** When the first is due; null if there is none. */
  readonly first_due: number | null
}

/** How much is waiting: of a user, or of all without one. */
export async function sumScheduled(reader: Reader, userNid?: number): Promise<ScheduledSum> {
  const [row] = await reader.query<ScheduledSum>(
    `SELECT count(*) AS events, coalesce(sum(octet_length(content)), 0)::bigint AS bytes, min(due_at) AS first_due
     FROM delayed_event WHERE finalised_at IS NULL ${userNid === undefined ? '' : 'AND user_nid = $1'}`,
    userNid === undefined ? [] : [userNid],
  )
  return row!
}

/** Those that are due, in the order of their times. @param without rooms of which none is wanted */
export function dueDelayedEvents(
  reader: Reader,
  now: number,
  atMost: number,
  without: readonly RoomId[],
): Promise<Pick<DelayedEventRow, 'delay_id' | 'room_id'>[]> {
  return reader.query(
    `SELECT delay_id, room_id FROM delayed_event WHERE finalised_at IS NULL AND due_at <= $1 AND room_id <> ALL ($3::text[])
     ORDER BY due_at, delay_id LIMIT $2`,
    [now, atMost, without],
  )
}

/** When the first is due, but for those of some rooms. */
export async function firstDueAt(reader: Reader, without: readonly RoomId[]): Promise<number | undefined> {
  const [row] = await reader.query<{ due_at: number }>(
    'SELECT due_at FROM delayed_event WHERE finalised_at IS NULL AND room_id <> ALL ($1::text[]) ORDER BY due_at LIMIT 1',
    [without],
  )
  return row?.due_at
}

export async function restartDelayedEvent(tx: Tx, delayId: string, now: number): Promise<void> {
  await tx.query(
    'UPDATE delayed_event SET scheduled_at = $2, due_at = $2 + delay_ms WHERE delay_id = $1 AND finalised_at IS NULL',
    [delayId, now],
  )
}

/** Has one tried again later, after others that are due. */
export async function postponeDelayedEvent(tx: Tx, delayId: string, dueAt: number): Promise<void> {
  await tx.query('UPDATE delayed_event SET due_at = $2 WHERE delay_id = $1 AND finalised_at IS NULL', [delayId, dueAt])
}

/** Ends one, and forgets all but the newest of its user that have ended. @param kept how many stay, and bytes of their contents */
export async function finaliseDelayedEvent(
  tx: Tx,
  { delay_id, user_nid }: Pick<DelayedEventRow, 'delay_id' | 'user_nid'>,
  outcome: { readonly at: number; readonly eventId?: EventId; readonly error?: string },
  kept: { readonly events: number; readonly bytes: number },
): Promise<void> {
  await tx.query(
    'UPDATE delayed_event SET finalised_at = $2, event_id = $3, error = $4 WHERE delay_id = $1 AND finalised_at IS NULL',
    [delay_id, outcome.at, outcome.eventId ?? null, outcome.error ?? null],
  )
  await tx.query(
    `DELETE FROM delayed_event WHERE delay_id = ANY(ARRAY(
       SELECT delay_id FROM (
         SELECT delay_id, row_number() OVER newest AS place, sum(octet_length(content)) OVER newest AS bytes
         FROM delayed_event WHERE user_nid = $1 AND finalised_at IS NOT NULL
         WINDOW newest AS (ORDER BY finalised_at DESC, delay_id ROWS UNBOUNDED PRECEDING)
       ) ended WHERE place > $2 OR (place > 1 AND bytes > $3)))`,
    [user_nid, kept.events, kept.bytes],
  )
}

/** Forgets everything that a user has scheduled. */
export async function deleteDelayedEventsOf(tx: Tx, userNid: number): Promise<void> {
  await tx.query('DELETE FROM delayed_event WHERE user_nid = $1', [userNid])
}

/** Forgets some of those that have ended, the oldest, while there are more than so many. Gives how many. */
export async function forgetOldestDelayed(tx: Tx, kept: number, atMost: number): Promise<number> {
  const rows = await tx.query(
    `DELETE FROM delayed_event WHERE delay_id = ANY(ARRAY(
       SELECT delay_id FROM delayed_event WHERE finalised_at IS NOT NULL
       ORDER BY finalised_at DESC OFFSET $1 LIMIT $2)) RETURNING 1 AS one`,
    [kept, atMost],
  )
  return rows.length
}

/** Forgets some that ended before a time. Gives how many. */
export async function forgetDelayedEvents(tx: Tx, before: number, atMost: number): Promise<number> {
  const rows = await tx.query(
    `DELETE FROM delayed_event WHERE delay_id = ANY(ARRAY(
       SELECT delay_id FROM delayed_event WHERE finalised_at < $1 LIMIT $2)) RETURNING 1 AS one`,
    [before, atMost],
  )
  return rows.length
}
