import type { Reader, Tx } from '../db/db.ts'
import { decodable } from '../db/decodable.ts'

// Tables: undone; read: account, event, media_content, cross_signing_key, key_signature, account_data, blocked_room

/** What ended or was taken back, as a restore needs it to do it again. Lists, because there may be many. */
export type Undone =
  | readonly ['session', tokenNid: number, userNid: number]
  | readonly ['device', userNid: number, deviceId: string, createdAt: number]
  | readonly ['account', userNid: number, standing: AccountStanding]
  | readonly ['media', serverName: string, mediaId: string, createdAt: number]
  | readonly ['quarantine', digest: string, by: string | null]
  | readonly ['event', eventNid: number, eventId: string, redacted: RedactedEvent]
  | readonly ['purge', purgeId: string, roomNid: number, upToPos: number, upToNid: number, withLocal: boolean]
  | readonly ['deletion', deletionId: string, roomId: string, request: string]
  // The release before, on the database of this one, notes these two without what is now.
  | readonly ['cross_signing', userNid: number, identity: CrossSigningIdentity | undefined]
  | readonly ['key_backup', userNid: number, version: number]
  | readonly ['block', roomId: string, block: RoomBlock | null | undefined]

/** What an account may, and by which password. */
export interface AccountStanding {
  readonly password_hash: string | null
  readonly deactivated_at: number | null
  readonly erased_at: number | null
  readonly erased_pos: number | null
  readonly is_locked: boolean
  readonly is_suspended: boolean
  readonly is_admin: boolean
  /** These are missing in journals of early releases. */
  readonly is_shadow_banned?: boolean
  readonly awaits_approval?: boolean
  readonly valid_until?: number | null
}

/** The keys by which a user vouches for devices, as they are now: with them goes what clients need to use them. */
export interface CrossSigningIdentity {
  readonly keys: readonly {
    readonly usage: 'master' | 'self_signing' | 'user_signing'
    readonly public_key: string
    readonly json: string
    readonly signature: string | null
    readonly empty_signatures: string | null
  }[]
  /** By the user, of own keys and devices. */
  readonly signatures: readonly { readonly target: string; readonly signer_key: string; readonly signature: string }[]
  /** The private keys as clients encrypted them: account data by type. */
  readonly secrets: readonly { readonly type: string; readonly content: string }[]
}

export interface RoomBlock {
  readonly blocked_by: string
  readonly blocked_at: number
}

export interface RedactedEvent {
  readonly redacted_by: number
  readonly json: string
  readonly auth_content: string | null
}

/** The number of the newest note; 0 if there is none. */
export async function newestUndone(reader: Reader): Promise<number> {
  const [row] = await reader.query<{ newest: number }>(
    'SELECT coalesce(max(undone_nid), 0)::bigint AS newest FROM undone',
  )
  return row!.newest
}

/** More signatures or longer secrets are none that clients make. */
const [MAX_OWN_SIGNATURES, MAX_SECRET_BYTES] = [1_000, 8_192]

const IDENTITY = `SELECT json_build_object(
  'keys', (SELECT coalesce(json_agg(json_build_object('usage', usage, 'public_key', public_key, 'json', json, 'signature', signature,
    'empty_signatures', empty_signatures)), '[]') FROM cross_signing_key WHERE user_nid = u.nid),
  'signatures', (SELECT coalesce(json_agg(s), '[]') FROM (SELECT target, signer_key, signature FROM key_signature
    WHERE target_nid = u.nid AND signer_nid = u.nid
    ORDER BY signer_key IN (SELECT 'ed25519:' || public_key FROM cross_signing_key WHERE user_nid = u.nid) DESC, target, signer_key
    LIMIT ${MAX_OWN_SIGNATURES}) AS s),
  'secrets', (SELECT coalesce(json_agg(json_build_object('type', type, 'content', content)), '[]') FROM account_data
    WHERE user_nid = u.nid AND room_id = '' AND NOT is_deleted AND octet_length(content) <= ${MAX_SECRET_BYTES} AND type IN (
      'm.cross_signing.master', 'm.cross_signing.self_signing', 'm.cross_signing.user_signing', 'm.secret_storage.default_key',
      (SELECT 'm.secret_storage.key.' || (${decodable('d.content')} ->> 'key') FROM account_data d
       WHERE d.user_nid = u.nid AND d.room_id = '' AND d.type = 'm.secret_storage.default_key' AND NOT d.is_deleted)))
  )::text FROM (SELECT (what::json ->> 0)::bigint AS nid) AS u`

/** What ended since a moment, each once and as it is now: so many at most, the newest. */
export async function undoneSince(reader: Reader, since: number, atMost: number): Promise<Undone[]> {
  const rows = await reader.query<{ kind: string; what: string; now: string | null }>(
    `SELECT kind, what, CASE kind
       WHEN 'account' THEN (SELECT json_build_object('password_hash', password_hash, 'deactivated_at', deactivated_at, 'erased_at', erased_at,
         'erased_pos', erased_pos, 'is_locked', is_locked, 'is_suspended', is_suspended, 'is_admin', is_admin,
         'is_shadow_banned', is_shadow_banned, 'awaits_approval', awaits_approval, 'valid_until', valid_until)::text
         FROM account WHERE user_nid = (what::json ->> 0)::bigint)
       WHEN 'event' THEN (SELECT json_build_object('redacted_by', redacted_by, 'json', json, 'auth_content', auth_content)::text
         FROM event WHERE event_nid = (what::json ->> 0)::bigint AND redacted_by IS NOT NULL)
       WHEN 'quarantine' THEN (SELECT to_json(quarantined_by)::text FROM media_content WHERE digest = decode(what::json ->> 0, 'hex'))
       WHEN 'block' THEN (SELECT json_build_object('blocked_by', blocked_by, 'blocked_at', blocked_at)::text
         FROM blocked_room WHERE room_id = what::json ->> 0)
       WHEN 'cross_signing' THEN (${IDENTITY})
     END AS now
     FROM (SELECT kind, what FROM undone WHERE at >= $1 GROUP BY kind, what ORDER BY max(undone_nid) DESC LIMIT $2) AS found`,
    [since, atMost],
  )
  return rows.flatMap(({ kind, what, now }) => {
    const listed = [kind, ...(JSON.parse(what) as unknown[])]
    if (kind === 'quarantine' || kind === 'block') return [[...listed, JSON.parse(now ?? 'null')] as unknown as Undone]
    if (!(kind === 'account' || kind === 'event' || kind === 'cross_signing')) return [listed as unknown as Undone]
    // Gone since: whatever removed it stands in the list too.
    return now === null ? [] : [[...listed, JSON.parse(now)] as unknown as Undone]
  })
}

/** Whether notes from before a moment are there, or there were none to be removed: only then all since it are. */
export async function oldestUndone(reader: Reader): Promise<number | undefined> {
  const [row] = await reader.query<{ at: number | null }>('SELECT min(at)::bigint AS at FROM undone')
  return row?.at ?? undefined
}

/** Forgets some from before a time, and those beyond the newest so many. Gives how many. */
export async function forgetUndone(tx: Tx, before: number, kept: number, atMost: number): Promise<number> {
  const rows = await tx.query(
    `DELETE FROM undone WHERE undone_nid = ANY(ARRAY(
       SELECT undone_nid FROM undone WHERE at < $1 OR undone_nid <= (SELECT max(undone_nid) - $2 FROM undone) ORDER BY undone_nid LIMIT $3))
     RETURNING 1 AS one`,
    [before, kept, atMost],
  )
  return rows.length
}
