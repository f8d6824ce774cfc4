import { endAccount, eraseAccount, insertDeactivation } from '../accounts/deactivations.ts'
import { deleteLoginTokensOf } from '../accounts/login-tokens.ts'
import type { Tx } from '../db/db.ts'
import { deleteKeyBackups } from '../keys/key-backups.ts'
import { deleteMedia } from '../media/media-sweep.ts'
import { deleteDelayedEventsOf } from '../rooms/delayed-events.ts'
import { insertPurge } from '../rooms/history-purges.ts'
import { insertDeletion } from '../rooms/room-deletions.ts'
import { deleteBackupsOfKeys, setBlocks, setIdentity } from './redo-more.ts'
import type { AccountStanding, Undone } from './undone.ts'

// Tables: access_token, refresh_token, oauth_session, device, key_signature, restored_user, account, media, media_content, event,
// event_relation, highlight, room; and those of what it calls

type Kind = Undone[0]
type OfKind<K extends Kind> = Extract<Undone, readonly [K, ...unknown[]]>

const ROWS_AT_ONCE = 5_000

/** Does again in a database that was brought back what had ended since its backup. What the backup does not know is passed over. Gives how much of each kind took effect. */
export async function redo(
  tx: Tx,
  undone: readonly Undone[],
  by: { readonly now: number; readonly eventPosition: number },
): Promise<Record<Kind, number>> {
  const of = <K extends Kind>(kind: K): OfKind<K>[] => undone.filter((one): one is OfKind<K> => one[0] === kind)
  const counts = {
    ...{ session: 0, device: 0, account: 0, media: 0, quarantine: 0, event: 0, purge: 0, deletion: 0 },
    ...{ cross_signing: 0, key_backup: 0, block: 0 },
  }
  for (const some of portions(of('session'))) counts.session += await endSessions(tx, some)
  for (const some of portions(of('device'))) counts.device += await removeDevices(tx, some)
  for (const [, userNid, standing] of of('account')) counts.account += await settleAccount(tx, userNid, standing, by)
  for (const some of portions(of('media'))) counts.media += await removeMedia(tx, some)
  for (const some of portions(newestOfEach(of('quarantine')))) counts.quarantine += await hideMedia(tx, some)
  for (const some of portions(of('event'))) counts.event += await redactEvents(tx, some)
  counts.purge = await purgeHistory(tx, of('purge'), by)
  counts.deletion = await deleteRooms(tx, of('deletion'), by.now)
  for (const [, userNid, identity] of of('cross_signing'))
    if (identity !== undefined) counts.cross_signing += await setIdentity(tx, userNid, identity)
  for (const some of portions(of('key_backup'))) counts.key_backup += await deleteBackupsOfKeys(tx, some)
  for (const some of portions(newestOfEach(of('block')))) counts.block += await setBlocks(tx, some)
  return counts
}

/** Several journals may tell of one thing: it is as the newest says, which comes last. */
function newestOfEach<Row extends readonly [Kind, string, ...unknown[]]>(rows: readonly Row[]): Row[] {
  return [...new Map(rows.map((row) => [row[1], row])).values()]
}

function* portions<Row>(rows: readonly Row[]): Generator<readonly Row[]> {
  for (let at = 0; at < rows.length; at += ROWS_AT_ONCE) yield rows.slice(at, at + ROWS_AT_ONCE)
}

async function endSessions(tx: Tx, sessions: readonly OfKind<'session'>[]): Promise<number> {
  const rows = await tx.query(
    `WITH gone AS (
       DELETE FROM access_token t USING unnest($1::bigint[], $2::bigint[]) AS n (token_nid, user_nid)
       WHERE t.token_nid = n.token_nid AND t.user_nid = n.user_nid RETURNING t.user_nid, t.device_id
     ), refreshing AS (DELETE FROM refresh_token r USING gone g WHERE r.user_nid = g.user_nid AND r.device_id = g.device_id),
       granted AS (DELETE FROM oauth_session o USING gone g WHERE o.user_nid = g.user_nid AND o.device_id = g.device_id)
     SELECT 1 AS one FROM gone`,
    [sessions.map(([, token]) => token), sessions.map(([, , user]) => user)],
  )
  return rows.length
}

/** Another device may have got the same name since: the time at which it was made tells. */
async function removeDevices(tx: Tx, devices: readonly OfKind<'device'>[]): Promise<number> {
  const rows = await tx.query(
    `WITH gone AS (
       DELETE FROM device d USING unnest($1::bigint[], $2::text[], $3::bigint[]) AS n (user_nid, device_id, created_at)
       WHERE d.user_nid = n.user_nid AND d.device_id = n.device_id AND d.created_at = n.created_at RETURNING d.user_nid, d.device_id
     ), signed AS (DELETE FROM key_signature k USING gone g WHERE k.target_nid = g.user_nid AND k.target = g.device_id),
       signing AS (DELETE FROM key_signature k USING gone g WHERE k.signer_nid = g.user_nid AND k.signer_key = 'ed25519:' || g.device_id),
       told AS (INSERT INTO restored_user (user_nid) SELECT DISTINCT user_nid FROM gone ON CONFLICT DO NOTHING)
     SELECT 1 AS one FROM gone`,
    [devices.map(([, user]) => user), devices.map(([, , device]) => device), devices.map(([, , , at]) => at)],
  )
  return rows.length
}

/** A password, what operators gave an account and took from it, and its end. The rest of a deactivation, such as leaving rooms, is left to its worker. */
async function settleAccount(
  tx: Tx,
  userNid: number,
  standing: AccountStanding,
  { now, eventPosition }: { readonly now: number; readonly eventPosition: number },
): Promise<number> {
  const { password_hash, deactivated_at, erased_at, erased_pos, is_locked, is_suspended, is_admin } = standing
  const { is_shadow_banned, awaits_approval, valid_until } = standing
  const rows = await tx.query(
    `UPDATE account SET is_locked = $3, is_suspended = $4, is_admin = is_admin AND $5,
       password_hash = CASE WHEN deactivated_at IS NULL AND NOT $6 THEN $2 ELSE password_hash END,
       is_shadow_banned = coalesce($7, is_shadow_banned), awaits_approval = coalesce($8, awaits_approval),
       valid_until = CASE WHEN $9 THEN $10 ELSE valid_until END
     WHERE user_nid = $1 RETURNING 1 AS one`,
    [
      ...[userNid, password_hash, is_locked, is_suspended, is_admin, deactivated_at !== null],
      ...[is_shadow_banned ?? null, awaits_approval ?? null, valid_until !== undefined, valid_until ?? null],
    ],
  )
  if (rows.length === 0) return 0
  if (deactivated_at !== null && (await endAccount(tx, userNid, deactivated_at))) {
    await deleteLoginTokensOf(tx, userNid)
    await deleteKeyBackups(tx, userNid)
    await deleteDelayedEventsOf(tx, userNid)
    await insertDeactivation(tx, { userNid, idServer: undefined, now, dueAt: now })
  }
  if (erased_at !== null) await eraseAccount(tx, userNid, erased_at, erased_pos ?? eventPosition)
  return 1
}

async function removeMedia(tx: Tx, media: readonly OfKind<'media'>[]): Promise<number> {
  const rows = await tx.query<{ media_nid: number }>(
    `SELECT m.media_nid FROM media m JOIN unnest($1::text[], $2::text[], $3::bigint[]) AS n (server_name, media_id, created_at)
       USING (server_name, media_id, created_at)`,
    [media.map(([, server]) => server), media.map(([, , id]) => id), media.map(([, , , at]) => at)],
  )
  const gone = await deleteMedia(
    tx,
    rows.map(({ media_nid }) => media_nid),
  )
  return gone.length
}

async function hideMedia(tx: Tx, content: readonly OfKind<'quarantine'>[]): Promise<number> {
  const rows = await tx.query(
    `UPDATE media_content c SET quarantined_by = n.by FROM unnest($1::text[], $2::text[]) AS n (digest, by)
     WHERE c.digest = decode(n.digest, 'hex') AND c.quarantined_by IS DISTINCT FROM n.by RETURNING 1 AS one`,
    [content.map(([, digest]) => digest), content.map(([, , by]) => by)],
  )
  return rows.length
}

/** The redaction itself may be lost. What it took away stays away. */
async function redactEvents(tx: Tx, events: readonly OfKind<'event'>[]): Promise<number> {
  const rows = await tx.query(
    `WITH gone AS (
       UPDATE event e SET redacted_by = n.redacted_by, json = n.json, auth_content = n.auth_content, content_place = NULL
       FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::text[], $5::text[]) AS n (event_nid, event_id, redacted_by, json, auth_content)
       WHERE e.event_nid = n.event_nid AND e.event_id = n.event_id AND e.redacted_by IS NULL RETURNING e.event_nid, e.room_nid
     ), unrelated AS (DELETE FROM event_relation r USING gone g WHERE r.room_nid = g.room_nid AND r.child_nid = g.event_nid),
       unmarked AS (DELETE FROM highlight h USING gone g WHERE h.room_nid = g.room_nid AND h.event_nid = g.event_nid)
     SELECT 1 AS one FROM gone`,
    [
      ...[events.map(([, nid]) => nid), events.map(([, , id]) => id)],
      events.map(([, , , { redacted_by }]) => redacted_by),
      events.map(([, , , { json }]) => json),
      events.map(([, , , { auth_content }]) => auth_content),
    ],
  )
  return rows.length
}

/** One at a time of each room: those that take most first. What was sent after the backup is lost, and new events take its positions. */
async function purgeHistory(
  tx: Tx,
  purges: readonly OfKind<'purge'>[],
  { now, eventPosition }: { readonly now: number; readonly eventPosition: number },
): Promise<number> {
  let count = 0
  for (const [, id, roomNid, upToPos, upToNid, withLocal] of purges.toSorted((a, b) => b[3] - a[3])) {
    const [room] = await tx.query<{ last: number | null }>(
      'SELECT (SELECT max(room_pos) FROM event e WHERE e.room_nid = r.room_nid)::bigint AS last FROM room r WHERE room_nid = $1',
      [roomNid],
    )
    if (room === undefined || room.last === null) continue
    const ends = { up_to_pos: Math.min(upToPos, room.last), up_to_nid: Math.min(upToNid, eventPosition) }
    const purge = {
      purge_id: `${id}~${now}`,
      room_nid: roomNid,
      ...ends,
      with_local: withLocal,
      asked_at: now,
      is_by_age: false,
    }
    if (await insertPurge(tx, purge)) count++
  }
  return count
}

/** Its users were told when it was deleted: this time no new room is made for that. */
async function deleteRooms(tx: Tx, deletions: readonly OfKind<'deletion'>[], now: number): Promise<number> {
  let count = 0
  for (const [, id, roomId, text] of deletions) {
    const [room] = await tx.query<{ room_nid: number }>('SELECT room_nid FROM room WHERE room_id = $1', [roomId])
    if (room === undefined) continue
    const request = { ...JSON.parse(text), newRoomUserId: undefined }
    const deletion = { id: `${id}~${now}`, roomId: roomId as never, roomNid: room.room_nid, request, askedAt: now }
    if (await insertDeletion(tx, deletion)) count++
  }
  return count
}
