import type { Medium } from '../../core/threepid.ts'
import type { Reader, Tx } from '../db/db.ts'

// Table: threepid_bind

export interface ThreepidBindRow {
  readonly medium: Medium
  readonly address: string
  /** The identity server's name: host and optional port. */
  readonly id_server: string
}

/** The addresses that were bound for a user through this server, newest first. */
export async function listThreepidBinds(reader: Reader, userNid: number): Promise<ThreepidBindRow[]> {
  return reader.query<ThreepidBindRow>(
    'SELECT medium, address, id_server FROM threepid_bind WHERE user_nid = $1 ORDER BY bound_at DESC, id_server',
    [userNid],
  )
}

export async function countThreepidBinds(reader: Reader, userNid: number): Promise<number> {
  const [row] = await reader.query<{ count: number }>(
    'SELECT count(*)::int AS count FROM threepid_bind WHERE user_nid = $1',
    [userNid],
  )
  return row?.count ?? 0
}

export async function insertThreepidBind(
  tx: Tx,
  userNid: number,
  { medium, address, id_server, bound_at }: ThreepidBindRow & { readonly bound_at: number },
): Promise<void> {
  await tx.query(
    `INSERT INTO threepid_bind (user_nid, medium, address, id_server, bound_at) VALUES ($1, $2, $3, $4, $5)
     ON CONFLICT (user_nid, medium, address, id_server) DO UPDATE SET bound_at = excluded.bound_at`,
    [userNid, medium, address, id_server, bound_at],
  )
}

export async function deleteThreepidBind(tx: Tx, userNid: number, bind: ThreepidBindRow): Promise<void> {
  await tx.query('DELETE FROM threepid_bind WHERE user_nid = $1 AND medium = $2 AND address = $3 AND id_server = $4', [
    userNid,
    bind.medium,
    bind.address,
    bind.id_server,
  ])
}
