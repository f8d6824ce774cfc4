import type { UserId } from '../../core/ids.ts'
import type { Tx } from '../db/db.ts'

// Tables: newcomer, account, matrix_user

export interface NewcomerRow {
  readonly user_nid: number
  readonly user_id: UserId
  readonly is_guest: boolean
  /** An operator has not let them in yet. */
  readonly awaits_approval: boolean
  readonly is_locked: boolean
  /** The account has ended. */
  readonly is_shut: boolean
  readonly attempts: number
}

export async function insertNewcomer(tx: Tx, userNid: number, now: number): Promise<void> {
  await tx.query('INSERT INTO newcomer (user_nid, due_at) VALUES ($1, $2) ON CONFLICT (user_nid) DO NOTHING', [
    userNid,
    now,
  ])
}

/** Leases at most so many that are due, until `leasedUntil`. */
export function claimNewcomers(tx: Tx, now: number, leasedUntil: number, atMost: number): Promise<NewcomerRow[]> {
  return tx.query<NewcomerRow>(
    `UPDATE newcomer n SET due_at = $2, attempts = attempts + 1 FROM account a JOIN matrix_user u USING (user_nid)
     WHERE a.user_nid = n.user_nid AND n.user_nid IN (
       SELECT user_nid FROM newcomer WHERE due_at <= $1 ORDER BY due_at LIMIT $3 FOR UPDATE SKIP LOCKED)
     RETURNING n.user_nid, u.user_id, a.is_guest, a.awaits_approval, a.is_locked,
       a.deactivated_at IS NOT NULL AS is_shut, n.attempts`,
    [now, leasedUntil, atMost],
  )
}

/** Sets when somebody is due, and undoes the count of this attempt where it was none. */
export async function postponeNewcomer(tx: Tx, userNid: number, dueAt: number, attempts: number): Promise<void> {
  await tx.query('UPDATE newcomer SET due_at = $2, attempts = $3 WHERE user_nid = $1', [userNid, dueAt, attempts])
}

export async function deleteNewcomer(tx: Tx, userNid: number): Promise<void> {
  await tx.query('DELETE FROM newcomer WHERE user_nid = $1', [userNid])
}
