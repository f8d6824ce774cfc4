import type { JsonObject } from '../../core/json.ts'
import type { Reader } from '../db/db.ts'

// Tables: receipt, room, event, sync_filter, report, thread_subscription, device_key, cross_signing_key, key_backup, backed_up_key, delayed_event,
// accepted_policy, threepid_bind, new_login, room_alias, key_signature, matrix_user

/** The terms that a user has agreed to. */
export function ownPolicies(reader: Reader, userNid: number): Promise<JsonObject[]> {
  return reader.query<JsonObject>(
    'SELECT url, accepted_at FROM accepted_policy WHERE user_nid = $1 ORDER BY accepted_at, url',
    [userNid],
  )
}

/** The addresses by which others find a user, and the identity servers that tell them. */
export function ownBindings(reader: Reader, userNid: number): Promise<JsonObject[]> {
  return reader.query<JsonObject>(
    'SELECT medium, address, id_server, bound_at FROM threepid_bind WHERE user_nid = $1 ORDER BY bound_at, medium, address',
    [userNid],
  )
}

/** From where a user has logged in on new devices, as far as the server still knows. */
export function ownLogins(reader: Reader, userNid: number): Promise<JsonObject[]> {
  return reader.query<JsonObject>(
    'SELECT device_id, device_name, ip, languages, logged_in_at FROM new_login WHERE user_nid = $1 ORDER BY logged_in_at',
    [userNid],
  )
}

/** The addresses of rooms that a user has made. */
export function ownAliases(reader: Reader, userNid: number): Promise<JsonObject[]> {
  return reader.query<JsonObject>(
    `SELECT a.alias, r.room_id, a.created_ts FROM room_alias a JOIN room r USING (room_nid)
     WHERE a.creator_nid = $1 ORDER BY a.created_ts, a.alias`,
    [userNid],
  )
}

/** Whose keys a user has signed: their own, and those of people whom they have verified. */
export function ownSignatures(reader: Reader, userNid: number): Promise<JsonObject[]> {
  return reader.query<JsonObject>(
    `SELECT u.user_id, s.target AS key, s.signer_key, s.signature FROM key_signature s JOIN matrix_user u ON u.user_nid = s.target_nid
     WHERE s.signer_nid = $1 ORDER BY s.position`,
    [userNid],
  )
}

/** How far a user has read. */
export function ownReceipts(reader: Reader, userNid: number): Promise<JsonObject[]> {
  return reader.query<JsonObject>(
    `SELECT r.room_id, c.kind, c.thread_id, e.event_id, c.ts
     FROM receipt c JOIN room r USING (room_nid) LEFT JOIN event e USING (event_nid)
     WHERE c.user_nid = $1 ORDER BY c.room_nid, c.kind, c.thread_id`,
    [userNid],
  )
}

/** The filters of a user's clients, as JSON. */
export async function ownFilters(reader: Reader, userNid: number): Promise<string[]> {
  const rows = await reader.query<{ definition: string }>(
    'SELECT definition FROM sync_filter WHERE user_nid = $1 ORDER BY filter_nid',
    [userNid],
  )
  return rows.map(({ definition }) => definition)
}

/** What a user has reported. */
export function ownReports(reader: Reader, userNid: number): Promise<JsonObject[]> {
  return reader.query<JsonObject>(
    `SELECT kind, received_at, reason, score, room_id, event_id, target_user FROM report
     WHERE reporter_nid = $1 ORDER BY report_nid`,
    [userNid],
  )
}

/** The threads that a user follows, and those that they do not want to follow. */
export function ownThreads(reader: Reader, userNid: number): Promise<JsonObject[]> {
  return reader.query<JsonObject>(
    `SELECT r.room_id, t.root_id, t.is_subscribed, t.is_automatic FROM thread_subscription t JOIN room r USING (room_nid)
     WHERE t.user_nid = $1 ORDER BY t.room_nid, t.root_id`,
    [userNid],
  )
}

/** What a user has sent later and is not sent yet. */
export function ownDelayedEvents(reader: Reader, userNid: number): Promise<JsonObject[]> {
  return reader.query<JsonObject>(
    `SELECT room_id, type, state_key, content, delay_ms, scheduled_at, due_at, finalised_at, event_id FROM delayed_event
     WHERE user_nid = $1 ORDER BY due_at, delay_id`,
    [userNid],
  )
}

/** The public keys of a user and of their devices, each as JSON. */
export function ownKeys(reader: Reader, userNid: number): Promise<JsonObject[]> {
  return reader.query<JsonObject>(
    `SELECT device_id AS name, json FROM device_key WHERE user_nid = $1
     UNION ALL SELECT usage AS name, json FROM cross_signing_key WHERE user_nid = $1 ORDER BY name`,
    [userNid],
  )
}

/** The versions of a user's key backup. */
export function ownKeyBackups(reader: Reader, userNid: number): Promise<JsonObject[]> {
  return reader.query<JsonObject>(
    'SELECT version, algorithm, auth_data, key_count FROM key_backup WHERE user_nid = $1 ORDER BY version',
    [userNid],
  )
}

export interface OwnBackedUpKey extends JsonObject {
  version: number
  room_id: string
  session_id: string
  /** JSON, encrypted by its user. */
  session_data: string
}

/** So many of a user's backed-up keys, after one. */
export function ownBackedUpKeys(
  reader: Reader,
  userNid: number,
  after: Pick<OwnBackedUpKey, 'version' | 'room_id' | 'session_id'>,
  atMost: number,
): Promise<OwnBackedUpKey[]> {
  return reader.query<OwnBackedUpKey>(
    `SELECT version, room_id, session_id, first_message_index, forwarded_count, is_verified, session_data
     FROM backed_up_key WHERE user_nid = $1 AND (version, room_id, session_id) > ($2, $3, $4)
     ORDER BY version, room_id, session_id LIMIT $5`,
    [userNid, after.version, after.room_id, after.session_id, atMost],
  )
}
