import type { UserId } from '../../core/ids.ts'
import type { Reader, Tx } from '../db/db.ts'
import { hashBinding, lockPeppersAsTheyAre, unhashBinding } from './peppers.ts'

// Table: identity_binding

/** An address of a person; in the spelling of core/threepid.ts. */
export interface ThreepidRow {
  readonly medium: string
  readonly address: string
}

export interface BindingRow extends ThreepidRow {
  readonly user_id: UserId
  readonly bound_at: number
}

/** Any constant does, one for all processes. */
const ADDRESS_LOCKS = 0x1d3

/** Locks an address until the end of the transaction: binding, unbinding and inviting run one after another. */
export async function lockAddress(tx: Tx, { medium, address }: ThreepidRow): Promise<void> {
  await tx.query('SELECT 1 AS one FROM pg_advisory_xact_lock($1, hashtext($2))', [
    ADDRESS_LOCKS,
    `${medium} ${address}`,
  ])
}

/** Binds an address to a user, replacing an earlier binding, and hashes it for lookup. */
export async function upsertBinding(tx: Tx, binding: BindingRow): Promise<void> {
  await lockPeppersAsTheyAre(tx)
  await tx.query(
    `INSERT INTO identity_binding (medium, address, user_id, bound_at) VALUES ($1, $2, $3, $4)
     ON CONFLICT (medium, address) DO UPDATE SET user_id = excluded.user_id, bound_at = excluded.bound_at`,
    [binding.medium, binding.address, binding.user_id, binding.bound_at],
  )
  await hashBinding(tx, binding)
}

/** Removes the binding of an address to this user. Gives whether there was one. */
export async function deleteBinding(tx: Tx, threepid: ThreepidRow, userId: UserId): Promise<boolean> {
  await lockPeppersAsTheyAre(tx)
  const rows = await tx.query(
    'DELETE FROM identity_binding WHERE medium = $1 AND address = $2 AND user_id = $3 RETURNING 1 AS one',
    [threepid.medium, threepid.address, userId],
  )
  if (rows.length > 0) await unhashBinding(tx, threepid)
  return rows.length > 0
}

export async function findBinding(reader: Reader, { medium, address }: ThreepidRow): Promise<BindingRow | undefined> {
  const [row] = await reader.query<BindingRow>(
    'SELECT medium, address, user_id, bound_at FROM identity_binding WHERE medium = $1 AND address = $2',
    [medium, address],
  )
  return row
}

/** The bindings of those of these addresses that have one. */
export async function findBindings(reader: Reader, threepids: readonly ThreepidRow[]): Promise<BindingRow[]> {
  return reader.query<BindingRow>(
    `SELECT b.medium, b.address, b.user_id, b.bound_at
     FROM unnest($1::text[], $2::text[]) AS asked (medium, address)
     JOIN identity_binding b ON b.medium = asked.medium AND b.address = asked.address`,
    [threepids.map(({ medium }) => medium), threepids.map(({ address }) => address)],
  )
}

/** All addresses that are bound to a user. Reads every binding there is: no index leads from users to addresses. */
export async function findBindingsOf(reader: Reader, userId: UserId): Promise<BindingRow[]> {
  return reader.query<BindingRow>(
    'SELECT medium, address, user_id, bound_at FROM identity_binding WHERE user_id = $1 ORDER BY binding_nid',
    [userId],
  )
}
