import type { Reader, Tx } from '../db/db.ts'

// Tables: undone; read: account, event, media_content

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

/** What an account may, and by which password. */
export interface AccountStanding {
  readonly password_hash: string | null
  readonly deactivated_at: number | null
  readonly erased_at: number | null
  readonly erased_pos: number | null
  readonly is_locked: boolean
  readonly is_suspended: boolean
  readonly is_admin: boolean
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

/** What ended since a moment, each once and as it is now: so many at most, the newest. */
export async function undoneSince(reader: Reader, since: number, atMost: number): Promise<Undone[]> {
  const rows = await reader.query<{ kind: string; what: string; now: string | null }>(
    `SELECT kind, what, CASE kind
       WHEN 'account' THEN (SELECT json_build_object('password_hash', password_hash, 'deactivated_at', deactivated_at, 'erased_at', erased_at,
         'erased_pos', erased_pos, 'is_locked', is_locked, 'is_suspended', is_suspended, 'is_admin', is_admin)::text
         FROM account WHERE user_nid = (what::json ->> 0)::bigint)
       WHEN 'event' THEN (SELECT json_build_object('redacted_by', redacted_by, 'json', json, 'auth_content', auth_content)::text
         FROM event WHERE event_nid = (what::json ->> 0)::bigint AND redacted_by IS NOT NULL)
       WHEN 'quarantine' THEN (SELECT to_json(quarantined_by)::text FROM media_content WHERE digest = decode(what::json ->> 0, 'hex'))
     END AS now
     FROM (SELECT kind, what FROM undone WHERE at >= $1 GROUP BY kind, what ORDER BY max(undone_nid) DESC LIMIT $2) AS found`,
    [since, atMost],
  )
  return rows.flatMap(({ kind, what, now }) => {
    const listed = [kind, ...(JSON.parse(what) as unknown[])]
    if (kind === 'quarantine') return [[...listed, JSON.parse(now ?? 'null')] as unknown as Undone]
    if (kind !== 'account' && kind !== 'event') return [listed as unknown as Undone]
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
