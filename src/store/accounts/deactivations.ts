import type { UserId } from '../../core/ids.ts'
import type { Reader, Tx } from '../db/db.ts'

// Tables: deactivation, account, profile_field, profile_change, sync_filter, push_rules, thread_subscription, directory_user, directory_word, account_data, ignored_sender, openid_token, uia_session, pusher, matrix_user

export interface DeactivationRow {
  readonly user_nid: number
  readonly user_id: UserId
  readonly id_server: string | null
  readonly attempts: number
}

/** Deactivates an account and removes its tokens and sessions; the caller removes its devices. False if it was deactivated before. */
export async function endAccount(tx: Tx, userNid: number, now: number): Promise<boolean> {
  const rows = await tx.query(
    `UPDATE account SET deactivated_at = $2, password_hash = NULL, is_admin = false
     WHERE user_nid = $1 AND deactivated_at IS NULL RETURNING 1 AS one`,
    [userNid, now],
  )
  if (rows.length === 0) return false
  await tx.query(
    `WITH uia AS (DELETE FROM uia_session WHERE user_nid = $1), pushing AS (DELETE FROM pusher WHERE user_nid = $1)
     DELETE FROM openid_token WHERE user_nid = $1`,
    [userNid],
  )
  return true
}

export async function isEnded(reader: Reader, userNid: number): Promise<boolean> {
  const rows = await reader.query(
    'SELECT 1 AS one FROM account WHERE user_nid = $1 AND deactivated_at IS NOT NULL AND NOT EXISTS (SELECT 1 FROM deactivation WHERE user_nid = $1)',
    [userNid],
  )
  return rows.length > 0
}

/**
 * Opens a deactivated account again, erased or not. The caller has locked its row. False if its deactivation is still under way.
 */
export async function reopenAccount(tx: Tx, userNid: number, passwordHash: string): Promise<boolean> {
  const rows = await tx.query(
    `UPDATE account SET deactivated_at = NULL, erased_at = NULL, erased_pos = NULL, password_hash = $2
     WHERE user_nid = $1 AND NOT EXISTS (SELECT 1 FROM deactivation WHERE user_nid = $1) RETURNING 1 AS one`,
    [userNid, passwordHash],
  )
  return rows.length > 0
}

/** Removes a user's data other than events, and records the position of the event stream. */
export async function eraseAccount(tx: Tx, userNid: number, now: number, position: number): Promise<void> {
  await tx.query(
    `UPDATE account SET erased_at = coalesce(erased_at, $2), erased_pos = CASE WHEN erased_at IS NULL THEN $3 ELSE erased_pos END
     WHERE user_nid = $1`,
    [userNid, now, position],
  )
  // Whoever writes the directory locks its rows in this order.
  await tx.query('DELETE FROM directory_user WHERE user_nid = $1', [userNid])
  await tx.query(
    `WITH profile AS (DELETE FROM profile_field WHERE user_nid = $1), changes AS (DELETE FROM profile_change WHERE user_nid = $1),
       filters AS (DELETE FROM sync_filter WHERE user_nid = $1),
       rules AS (DELETE FROM push_rules WHERE user_nid = $1), ignoring AS (DELETE FROM ignored_sender WHERE user_nid = $1),
       threads AS (DELETE FROM thread_subscription WHERE user_nid = $1),
       words AS (DELETE FROM directory_word WHERE user_nid = $1)
     DELETE FROM account_data WHERE user_nid = $1`,
    [userNid],
  )
}

/** All erased users, each with the position of the event stream at that time; NULL if it was not recorded. */
export function listErasedUsers(
  reader: Reader,
): Promise<{ readonly user_nid: number; readonly erased_pos: number | null }[]> {
  return reader.query('SELECT user_nid, erased_pos FROM account WHERE erased_at IS NOT NULL')
}

/** Those of these users who are erased, as `listErasedUsers` has them. */
export function findErasedUsers(
  reader: Reader,
  userNids: readonly number[],
): Promise<{ readonly user_nid: number; readonly erased_pos: number | null }[]> {
  return reader.query(
    'SELECT user_nid, erased_pos FROM account WHERE user_nid = ANY($1::bigint[]) AND erased_at IS NOT NULL',
    [userNids],
  )
}

/** Queues an account for the rest of its deactivation. The caller works on it first; from `dueAt` on others may. */
export async function insertDeactivation(
  tx: Tx,
  deactivation: {
    readonly userNid: number
    readonly idServer: string | undefined
    readonly now: number
    readonly dueAt: number
  },
): Promise<void> {
  const { userNid, idServer, now, dueAt } = deactivation
  await tx.query(
    `INSERT INTO deactivation (user_nid, id_server, requested_at, due_at) VALUES ($1, $2, $3, $4)
     ON CONFLICT (user_nid) DO UPDATE SET id_server = excluded.id_server, due_at = excluded.due_at`,
    [userNid, idServer ?? null, now, dueAt],
  )
}

/** Whether there is anything to claim. */
export async function isDeactivationDue(reader: Reader, now: number): Promise<boolean> {
  return (await reader.query('SELECT 1 AS one FROM deactivation WHERE due_at <= $1 LIMIT 1', [now])).length > 0
}

/** Leases at most so many due entries, until `leasedUntil`. */
export function claimDeactivations(
  tx: Tx,
  now: number,
  leasedUntil: number,
  atMost: number,
): Promise<DeactivationRow[]> {
  return tx.query<DeactivationRow>(
    `UPDATE deactivation d SET due_at = $2, attempts = attempts + 1 FROM matrix_user u
     WHERE u.user_nid = d.user_nid AND d.user_nid IN (
       SELECT user_nid FROM deactivation WHERE due_at <= $1 ORDER BY due_at LIMIT $3 FOR UPDATE SKIP LOCKED)
     RETURNING d.user_nid, u.user_id, d.id_server, d.attempts`,
    [now, leasedUntil, atMost],
  )
}

export async function postponeDeactivation(tx: Tx, userNid: number, dueAt: number): Promise<void> {
  await tx.query('UPDATE deactivation SET due_at = $2 WHERE user_nid = $1', [userNid, dueAt])
}

export async function finishDeactivation(tx: Tx, userNid: number): Promise<void> {
  await tx.query('DELETE FROM deactivation WHERE user_nid = $1', [userNid])
}
