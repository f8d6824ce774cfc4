import type { UserId } from '../../core/ids.ts'
import type { Reader, Tx } from '../db/db.ts'

// Tables: account, matrix_user

export interface AccountRow {
  readonly user_nid: number
  readonly user_id: UserId
  readonly password_hash: string | null
  readonly is_guest: boolean
  readonly is_admin: boolean
  readonly created_at: number
  readonly deactivated_at: number | null
  readonly is_locked: boolean
  readonly is_suspended: boolean
}

export async function findAccount(reader: Reader, userId: UserId): Promise<AccountRow | undefined> {
  const [row] = await reader.query<AccountRow>(
    `SELECT a.user_nid, u.user_id, a.password_hash, a.is_guest, a.is_admin, a.created_at, a.deactivated_at, a.is_locked, a.is_suspended
     FROM matrix_user u JOIN account a USING (user_nid) WHERE u.user_id = $1`,
    [userId],
  )
  return row
}

export async function findAccountByNid(reader: Reader, userNid: number): Promise<AccountRow | undefined> {
  const [row] = await reader.query<AccountRow>(
    `SELECT a.user_nid, u.user_id, a.password_hash, a.is_guest, a.is_admin, a.created_at, a.deactivated_at, a.is_locked, a.is_suspended
     FROM account a JOIN matrix_user u USING (user_nid) WHERE a.user_nid = $1`,
    [userNid],
  )
  return row
}

/** The account, its row locked against changes until the transaction ends. */
export async function lockAccount(tx: Tx, userNid: number): Promise<AccountRow | undefined> {
  const [row] = await tx.query<AccountRow>(
    `SELECT a.user_nid, u.user_id, a.password_hash, a.is_guest, a.is_admin, a.created_at, a.deactivated_at, a.is_locked, a.is_suspended
     FROM account a JOIN matrix_user u USING (user_nid) WHERE a.user_nid = $1 FOR UPDATE OF a`,
    [userNid],
  )
  return row
}

/** Makes an account; false when the user has one already. */
export async function insertAccount(
  tx: Tx,
  account: {
    readonly userNid: number
    readonly passwordHash: string | undefined
    readonly isGuest: boolean
    readonly isAdmin: boolean
    readonly appserviceId?: string
    readonly createdAt: number
  },
): Promise<boolean> {
  const rows = await tx.query(
    `INSERT INTO account (user_nid, password_hash, is_guest, is_admin, created_at, appservice_id)
     VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (user_nid) DO NOTHING RETURNING user_nid`,
    [
      account.userNid,
      account.passwordHash ?? null,
      account.isGuest,
      account.isAdmin,
      account.createdAt,
      account.appserviceId ?? null,
    ],
  )
  return rows.length === 1
}

/** Makes accounts of application services for those users that have none. */
export async function insertMissingAccounts(
  tx: Tx,
  accounts: readonly { readonly userNid: number; readonly appserviceId: string }[],
  createdAt: number,
): Promise<void> {
  await tx.query(
    `INSERT INTO account (user_nid, created_at, appservice_id)
     SELECT user_nid, $3, appservice_id FROM unnest($1::bigint[], $2::text[]) AS a (user_nid, appservice_id)
     ON CONFLICT (user_nid) DO NOTHING`,
    [accounts.map(({ userNid }) => userNid), accounts.map(({ appserviceId }) => appserviceId), createdAt],
  )
}

export async function setPasswordHash(tx: Tx, userNid: number, hash: string): Promise<void> {
  await tx.query('UPDATE account SET password_hash = $2 WHERE user_nid = $1', [userNid, hash])
}

/** Whether somebody can log in to the account by password. */
export async function hasPassword(reader: Reader, userNid: number): Promise<boolean> {
  const rows = await reader.query('SELECT 1 AS one FROM account WHERE user_nid = $1 AND password_hash IS NOT NULL', [
    userNid,
  ])
  return rows.length === 1
}

export async function setAdmin(tx: Tx, userNid: number, isAdmin: boolean): Promise<void> {
  await tx.query('UPDATE account SET is_admin = $2 WHERE user_nid = $1', [userNid, isAdmin])
}

/** Locks, unlocks, suspends or releases an account; undefined leaves a property unchanged. False if the account is deactivated. */
export async function restrainAccount(
  tx: Tx,
  userNid: number,
  wish: { readonly isLocked?: boolean; readonly isSuspended?: boolean },
): Promise<boolean> {
  const rows = await tx.query(
    `UPDATE account SET is_locked = coalesce($2, is_locked), is_suspended = coalesce($3, is_suspended)
     WHERE user_nid = $1 AND deactivated_at IS NULL RETURNING 1 AS one`,
    [userNid, wish.isLocked ?? null, wish.isSuspended ?? null],
  )
  return rows.length === 1
}

const COUNTING_LOCK = 0x75736572

/** The number of accounts that are neither guests nor deactivated. Locks: no other transaction counts until this one ends. */
export async function countUsers(tx: Tx): Promise<number> {
  await tx.query('SELECT 1 AS one FROM pg_advisory_xact_lock($1)', [COUNTING_LOCK])
  const [row] = await tx.query<{ count: number }>(
    'SELECT count(*) AS count FROM account WHERE NOT is_guest AND deactivated_at IS NULL AND appservice_id IS NULL',
  )
  return row?.count ?? 0
}

/** Turns a guest account into a full account; false if it is not a guest account (any more). */
export async function upgradeGuest(tx: Tx, userNid: number, passwordHash: string): Promise<boolean> {
  const rows = await tx.query(
    `UPDATE account SET is_guest = false, password_hash = $2
     WHERE user_nid = $1 AND is_guest AND deactivated_at IS NULL RETURNING 1 AS one`,
    [userNid, passwordHash],
  )
  return rows.length === 1
}

/** Administrators whose accounts have not ended, those of the oldest accounts first. Reads all accounts: use a connection for long queries. */
export async function listAdministrators(reader: Reader, atMost: number): Promise<UserId[]> {
  const rows = await reader.query<{ user_id: UserId }>(
    `SELECT user_id FROM account JOIN matrix_user USING (user_nid) WHERE is_admin AND deactivated_at IS NULL
     ORDER BY user_nid LIMIT $1`,
    [atMost],
  )
  return rows.map(({ user_id }) => user_id)
}
