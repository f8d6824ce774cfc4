import type { UserId } from '../../core/ids.ts'
import type { Reader, Tx } from '../db/db.ts'

// Tables: new_login, account, device, user_threepid, matrix_user

export interface NewLogin {
  readonly device_id: string
  readonly device_name: string | null
  readonly ip: string | null
  readonly languages: string | null
  readonly logged_in_at: number
  /** The owner's email addresses at that moment, the oldest first: whoever logged in may have removed some since. */
  readonly addresses: readonly string[] | null
  readonly failures: number
}

/** Of which new logins people are told. */
export interface NoteBounds {
  /** The first device of an account that was made after this is not news to its owner. */
  readonly accountBefore: number
  readonly mostPerUser: number
  /** Whether only people with an email address can be told. */
  readonly needsMail: boolean
  readonly mostAddresses: number
}

/**
 * A login that its owner has not been told of. Who was told of one on a device is told of the next one too: others may know the name of the
 * device.
 */
const WAITING = '(sent_at IS NULL OR logged_in_at > sent_at)'

/** Notes a login, unless there is nobody to tell, or very much to tell already. */
export async function noteNewLogin(
  tx: Tx,
  login: Omit<NewLogin, 'failures' | 'addresses'> & { readonly user_nid: number },
  { accountBefore, mostPerUser, needsMail, mostAddresses }: NoteBounds,
): Promise<void> {
  await tx.query(
    `INSERT INTO new_login AS l (user_nid, device_id, device_name, ip, languages, logged_in_at, due_at, addresses)
     SELECT user_nid, $2, coalesce($3, (SELECT display_name FROM device WHERE user_nid = $1 AND device_id = $2)), $4, $5, $6, $6,
       ARRAY(SELECT address FROM user_threepid WHERE user_nid = $1 AND medium = 'email' ORDER BY added_at, address LIMIT $10)
     FROM account
     WHERE user_nid = $1 AND NOT is_guest
       AND (created_at < $7 OR EXISTS (SELECT 1 FROM device WHERE user_nid = $1 AND device_id <> $2))
       AND (NOT $9 OR EXISTS (SELECT 1 FROM user_threepid WHERE user_nid = $1 AND medium = 'email'))
       AND (SELECT count(*) FROM new_login WHERE user_nid = $1) < $8
     ON CONFLICT (user_nid, device_id) DO UPDATE SET ip = excluded.ip, languages = excluded.languages,
       logged_in_at = excluded.logged_in_at, due_at = excluded.due_at, failures = 0
       WHERE l.sent_at IS NOT NULL AND l.logged_in_at <= l.sent_at AND l.ip IS DISTINCT FROM excluded.ip`,
    [
      ...[login.user_nid, login.device_id, login.device_name, login.ip, login.languages, login.logged_in_at],
      ...[accountBefore, mostPerUser, needsMail, mostAddresses],
    ],
  )
}

export interface PersonToTell {
  readonly user_nid: number
  readonly user_id: UserId
  readonly is_active: boolean
}

/** People who are to be told of something now and were told nothing since a moment, the ones who have waited longest first. */
export async function findPeopleToTell(
  reader: Reader,
  { now, sentSince }: { readonly now: number; readonly sentSince: number },
  atMost: number,
): Promise<PersonToTell[]> {
  return reader.query<PersonToTell>(
    `SELECT n.user_nid, u.user_id, a.deactivated_at IS NULL AS is_active
     FROM (SELECT user_nid, min(due_at) AS due_at FROM new_login l WHERE ${WAITING} AND due_at <= $1
             AND NOT EXISTS (SELECT 1 FROM new_login t WHERE t.user_nid = l.user_nid AND t.sent_at > $2)
           GROUP BY user_nid ORDER BY min(due_at) LIMIT $3) n
       JOIN account a USING (user_nid) JOIN matrix_user u USING (user_nid)
     ORDER BY n.due_at`,
    [now, sentSince, atMost],
  )
}

/** The logins that somebody has not been told of, the first one first. */
export async function listWaiting(reader: Reader, userNid: number): Promise<NewLogin[]> {
  return reader.query<NewLogin>(
    `SELECT device_id, device_name, ip, languages, logged_in_at, addresses, failures FROM new_login
     WHERE user_nid = $1 AND ${WAITING} ORDER BY logged_in_at, device_id`,
    [userNid],
  )
}

/** Notes that somebody was told of logins on these devices, as they were listed at a moment. */
export async function markSent(tx: Tx, userNid: number, deviceIds: readonly string[], listedAt: number): Promise<void> {
  await tx.query('UPDATE new_login SET sent_at = $3 WHERE user_nid = $1 AND device_id = ANY($2)', [
    userNid,
    deviceIds,
    listedAt,
  ])
}

/** Has all that somebody is to be told wait until another time. */
export async function postponeTelling(tx: Tx, userNid: number, dueAt: number): Promise<void> {
  await tx.query(`UPDATE new_login SET due_at = $2, failures = failures + 1 WHERE user_nid = $1 AND ${WAITING}`, [
    userNid,
    dueAt,
  ])
}

/** Forgets what somebody has not been told: all of it, or what happened before a moment. */
export async function forgetWaiting(tx: Tx, userNid: number, before: number): Promise<void> {
  await tx.query(`DELETE FROM new_login WHERE user_nid = $1 AND ${WAITING} AND logged_in_at < $2`, [userNid, before])
}

/** Gives how many were removed. */
export async function forgetSent(tx: Tx, before: number, atMost: number): Promise<number> {
  const rows = await tx.query(
    `DELETE FROM new_login WHERE (user_nid, device_id) IN (
       SELECT user_nid, device_id FROM new_login WHERE sent_at < $1 AND logged_in_at <= sent_at LIMIT $2) RETURNING 1 AS one`,
    [before, atMost],
  )
  return rows.length
}
