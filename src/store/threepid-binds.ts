import type { Medium } from '../core/threepid.ts'
import type { Reader, Tx } from './db.ts'

// Table: threepid_bind

export interface ThreepidBindRow {
  readonly medium: Medium
  readonly address: string
  /** The identity server's name: host and optional port. */
  readonly id_server: string
}

/** What was bound for a user through this server, the newest first. */
export async function listThreepidBinds(reader: Reader, userNid: number): Promise<ThreepidBindRow[]> {
  return reader.query<ThreepidBindRow>(
    'SELECT medium, address, id_server FROM threepid_bind WHERE user_nid = $1 ORDER BY bound_at DESC, id_server',
    [userNid],
  )
}

/** Notes a bind; false when the user has `atMost` of them. */
export async function insertThreepidBind(
  tx: Tx,
  userNid: number,
  bind: ThreepidBindRow & { readonly bound_at: number },
  atMost: number,
): Promise<boolean> {
  const { medium, address, id_server, bound_at } = bind
  const rows = await tx.query(
    `INSERT INTO threepid_bind (user_nid, medium, address, id_server, bound_at)
     SELECT $1, $2, $3, $4, $5 WHERE (SELECT count(*) FROM threepid_bind WHERE user_nid = $1) < $6
     ON CONFLICT (user_nid, medium, address, id_server) DO UPDATE SET bound_at = excluded.bound_at
     RETURNING 1 AS one`,
    [userNid, medium, address, id_server, bound_at, atMost],
  )
  return rows.length === 1
}

export async function deleteThreepidBind(tx: Tx, userNid: number, bind: ThreepidBindRow): Promise<void> {
  await tx.query('DELETE FROM threepid_bind WHERE user_nid = $1 AND medium = $2 AND address = $3 AND id_server = $4', [
    userNid,
    bind.medium,
    bind.address,
    bind.id_server,
  ])
}
