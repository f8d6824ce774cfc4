import type { UserId } from '../../core/ids.ts'
import type { Reader, Tx } from '../db/db.ts'

// Tables: pusher, push_sent, push_gateway; read: matrix_user, room_member, event, thread_event, room

export type PusherKind = 'http' | 'email'

/** What the user sets; the columns are explained in the migration. */
export interface PusherWish {
  readonly user_nid: number
  readonly app_id: string
  readonly pushkey: string
  readonly kind: PusherKind
  readonly device_id: string | null
  readonly app_display_name: string
  readonly device_display_name: string
  readonly profile_tag: string | null
  readonly lang: string
  readonly data: string
  readonly is_enabled: boolean
  readonly set_at: number
}

/** How far a pusher has sent. */
export interface PusherProgress {
  readonly pusher_nid: number
  readonly position: number
  readonly lags: boolean
  readonly failures: number
  readonly failing_since: number | null
  readonly retry_at: number
  readonly mailed_at: number | null
  readonly pause_ms: number
}

export interface PusherRow extends PusherWish, PusherProgress {
  readonly user_id: UserId
}

const COLUMNS = `pusher_nid, user_nid, user_id, app_id, pushkey, kind, device_id, app_display_name, device_display_name, profile_tag, lang,
  data, is_enabled, set_at, position, lags, failures, failing_since, retry_at, mailed_at, pause_ms`

/** The pushers of a user, the oldest first. */
export function getPushersOf(reader: Reader, userNid: number): Promise<PusherRow[]> {
  return reader.query(
    `SELECT ${COLUMNS} FROM pusher JOIN matrix_user USING (user_nid) WHERE user_nid = $1 ORDER BY pusher_nid`,
    [userNid],
  )
}

export async function findPusher(reader: Reader, pusherNid: number): Promise<PusherRow | undefined> {
  const [row] = await reader.query<PusherRow>(
    `SELECT ${COLUMNS} FROM pusher JOIN matrix_user USING (user_nid) WHERE pusher_nid = $1`,
    [pusherNid],
  )
  return row
}

/** A page of all pushers, in the order of their numbers. */
export function getAllPushers(reader: Reader, after: number, limit: number): Promise<PusherRow[]> {
  return reader.query(
    `SELECT ${COLUMNS} FROM pusher JOIN matrix_user USING (user_nid) WHERE pusher_nid > $1 ORDER BY pusher_nid LIMIT $2`,
    [after, limit],
  )
}

/**
 * Sets a pusher of a user. A new one, and one that was disabled, begins at `position`; another keeps its position. Failures are forgotten,
 * because its address may be another now. False if the user has `atMost` pushers.
 */
export async function putPusher(tx: Tx, wish: PusherWish, position: number, atMost: number): Promise<boolean> {
  // Changes to the pushers of one user run one after another, so that the count is right.
  await tx.query('SELECT 1 AS one FROM account WHERE user_nid = $1 FOR UPDATE', [wish.user_nid])
  const rows = await tx.query(
    `INSERT INTO pusher AS p (user_nid, app_id, pushkey, kind, device_id, app_display_name, device_display_name, profile_tag, lang, data,
       is_enabled, set_at, position)
     SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13
     WHERE (SELECT count(*) FROM pusher WHERE user_nid = $1 AND (app_id, pushkey) <> ($2, $3)) < $14
     ON CONFLICT (user_nid, app_id, pushkey) DO UPDATE SET kind = excluded.kind, device_id = excluded.device_id,
       app_display_name = excluded.app_display_name, device_display_name = excluded.device_display_name,
       profile_tag = excluded.profile_tag, lang = excluded.lang, data = excluded.data, is_enabled = excluded.is_enabled,
       set_at = excluded.set_at, failures = 0, failing_since = NULL, retry_at = 0,
       position = CASE WHEN p.is_enabled AND p.kind = excluded.kind THEN p.position ELSE excluded.position END,
       lags = p.lags AND p.is_enabled AND p.kind = excluded.kind
     RETURNING 1 AS one`,
    [
      wish.user_nid,
      wish.app_id,
      wish.pushkey,
      wish.kind,
      wish.device_id,
      wish.app_display_name,
      wish.device_display_name,
      wish.profile_tag,
      wish.lang,
      wish.data,
      wish.is_enabled,
      wish.set_at,
      position,
      atMost,
    ],
  )
  return rows.length === 1
}

/** Removes the pushers of other users with this key. Gives these users. */
export async function takePushkey(tx: Tx, userNid: number, appId: string, pushkey: string): Promise<number[]> {
  const rows = await tx.query<{ user_nid: number }>(
    'DELETE FROM pusher WHERE pushkey = $3 AND app_id = $2 AND user_nid <> $1 RETURNING user_nid',
    [userNid, appId, pushkey],
  )
  return rows.map(({ user_nid }) => user_nid)
}

export async function deletePusher(tx: Tx, userNid: number, appId: string, pushkey: string): Promise<void> {
  await tx.query('DELETE FROM pusher WHERE user_nid = $1 AND app_id = $2 AND pushkey = $3', [userNid, appId, pushkey])
}

/** A push gateway that did not answer. */
export interface GatewayRow {
  readonly origin: string
  readonly failures: number
  readonly retry_at: number
}

export function getGateways(reader: Reader): Promise<GatewayRow[]> {
  return reader.query('SELECT origin, failures, retry_at FROM push_gateway')
}

/** The position up to which every pusher that does not lag has sent everything; undefined before the first pusher. */
export async function pushedPosition(reader: Reader): Promise<number | undefined> {
  const [row] = await reader.query<{ position: number }>('SELECT position FROM push_sent')
  return row?.position
}

/** What changed since progress was saved last. */
export interface PushNews {
  readonly position: number
  readonly pushers: readonly PusherProgress[]
  /** With no failures: it has answered. */
  readonly gateways: readonly GatewayRow[]
}

/** Saves how far was sent. A pusher that was removed meanwhile stays removed. */
export async function savePushes(tx: Tx, { position, pushers, gateways }: PushNews): Promise<void> {
  await tx.query(
    'INSERT INTO push_sent (position) VALUES ($1) ON CONFLICT (is_only) DO UPDATE SET position = excluded.position',
    [position],
  )
  if (pushers.length > 0) await saveProgress(tx, pushers)
  const answered = gateways.filter(({ failures }) => failures === 0)
  if (answered.length > 0) {
    await tx.query('DELETE FROM push_gateway WHERE origin = ANY($1::text[])', [answered.map(({ origin }) => origin)])
  }
  const failing = gateways.filter(({ failures }) => failures > 0)
  if (failing.length === 0) return
  await tx.query(
    `INSERT INTO push_gateway (origin, failures, retry_at) SELECT * FROM unnest($1::text[], $2::integer[], $3::bigint[])
     ON CONFLICT (origin) DO UPDATE SET failures = excluded.failures, retry_at = excluded.retry_at`,
    [
      failing.map(({ origin }) => origin),
      failing.map(({ failures }) => failures),
      failing.map(({ retry_at }) => retry_at),
    ],
  )
}

async function saveProgress(tx: Tx, pushers: readonly PusherProgress[]): Promise<void> {
  await tx.query(
    `UPDATE pusher p SET position = s.position, lags = s.lags, failures = s.failures, failing_since = s.failing_since,
       retry_at = s.retry_at, mailed_at = s.mailed_at, pause_ms = s.pause_ms
     FROM unnest($1::bigint[], $2::bigint[], $3::boolean[], $4::integer[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[])
       AS s (pusher_nid, position, lags, failures, failing_since, retry_at, mailed_at, pause_ms)
     WHERE p.pusher_nid = s.pusher_nid`,
    [
      pushers.map((one) => one.pusher_nid),
      pushers.map((one) => one.position),
      pushers.map((one) => one.lags),
      pushers.map((one) => one.failures),
      pushers.map((one) => one.failing_since),
      pushers.map((one) => one.retry_at),
      pushers.map((one) => one.mailed_at),
      pushers.map((one) => one.pause_ms),
    ],
  )
}

/** Those of the rooms that users with pushers are joined to. */
export async function roomsWithPushers(reader: Reader, roomNids: readonly number[]): Promise<Set<number>> {
  const rows = await reader.query<{ room_nid: number }>(
    `SELECT DISTINCT room_nid FROM room_member JOIN pusher USING (user_nid)
     WHERE room_nid = ANY($1::bigint[]) AND membership = 'join'`,
    [roomNids],
  )
  return new Set(rows.map(({ room_nid }) => room_nid))
}

export interface Invitation {
  readonly user_nid: number
  readonly user_id: UserId
  readonly room_nid: number
  readonly event_nid: number
  readonly position: number
}

/** The open invitations of users with pushers between two positions of the event stream, in order. */
export function getInvitationsBetween(reader: Reader, after: number, upTo: number): Promise<Invitation[]> {
  return reader.query(
    `SELECT DISTINCT m.user_nid, user_id, m.room_nid, m.event_nid, coalesce(m.changed_at, m.event_nid) AS position
     FROM pusher JOIN matrix_user USING (user_nid) JOIN room_member m USING (user_nid)
     WHERE m.membership = 'invite' AND coalesce(m.changed_at, m.event_nid) > $1 AND coalesce(m.changed_at, m.event_nid) <= $2
     ORDER BY position`,
    [after, upTo],
  )
}

/** An event of the stream by number. */
export interface MissedEvent {
  readonly event_nid: number
  readonly room_nid: number
  readonly position: number
}

/** After which timeline positions of a room something may be unread: in its main timeline, and in any thread. */
export interface UnreadBeginnings {
  readonly main: number
  readonly threads: number
}

/**
 * The first events of each room that may be unread, between two positions of the stream; at most `limit` a room.
 * @param places one for each room
 */
export function getMissedEvents(
  reader: Reader,
  roomNids: readonly number[],
  places: readonly UnreadBeginnings[],
  { after, upTo }: { readonly after: number; readonly upTo: number },
  limit: number,
): Promise<MissedEvent[]> {
  return reader.query(
    `SELECT event_nid, room_nid, position FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS wanted (nid, main, threads)
     CROSS JOIN LATERAL (
       (SELECT event_nid, room_nid, room_pos, coalesce(stream_pos, event_nid) AS position FROM event
        WHERE room_nid = wanted.nid AND room_pos > wanted.main
        AND coalesce(stream_pos, event_nid) > $4 AND coalesce(stream_pos, event_nid) <= $5
        ORDER BY room_pos LIMIT $6)
       UNION ALL
       (SELECT event_nid, room_nid, room_pos, coalesce(stream_pos, event_nid) FROM thread_event JOIN event USING (room_nid, room_pos)
        WHERE room_nid = wanted.nid AND room_pos > wanted.threads AND room_pos <= wanted.main
        AND coalesce(stream_pos, event_nid) > $4 AND coalesce(stream_pos, event_nid) <= $5
        ORDER BY room_pos LIMIT $6)
       ORDER BY room_pos LIMIT $6) missed
     ORDER BY position`,
    [roomNids, places.map(({ main }) => main), places.map(({ threads }) => threads), after, upTo, limit],
  )
}

/**
 * The newest events of other senders in rooms before a position of the stream, newest first.
 * @param perRoom of each room, this many of its newest events are looked at
 */
export function getRecentEvents(
  reader: Reader,
  userNid: number,
  roomNids: readonly number[],
  { before, perRoom, limit }: { readonly before: number; readonly perRoom: number; readonly limit: number },
): Promise<MissedEvent[]> {
  return reader.query(
    `SELECT event_nid, room_nid, position FROM unnest($1::bigint[]) AS wanted (nid)
     CROSS JOIN LATERAL (SELECT event_nid, room_nid, sender_nid, coalesce(stream_pos, event_nid) AS position FROM event
       WHERE room_nid = wanted.nid AND room_pos > 0 ORDER BY room_pos DESC LIMIT $4) recent
     WHERE position < $3 AND sender_nid <> $2 ORDER BY position DESC LIMIT $5`,
    [roomNids, userNid, before, perRoom, limit],
  )
}

export async function removePusherByNumber(tx: Tx, pusherNid: number): Promise<void> {
  await tx.query('DELETE FROM pusher WHERE pusher_nid = $1', [pusherNid])
}

/** Removes a pusher that its gateway no longer wants, unless it was set again meanwhile. */
export async function removePusher(tx: Tx, { pusher_nid, set_at }: PusherRow): Promise<void> {
  await tx.query('DELETE FROM pusher WHERE pusher_nid = $1 AND set_at = $2', [pusher_nid, set_at])
}
