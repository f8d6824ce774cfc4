import type { Reader, Tx } from '../db/db.ts'

// Table: admin_act

export interface AdminActRow {
  readonly act_nid: number
  readonly at: number
  readonly actor: string
  readonly act: string
  readonly target: string
  readonly outcome: string
}

export type NewAdminAct = Omit<AdminActRow, 'act_nid'>

/** Gives the number of the row. */
export async function insertAdminAct(tx: Tx, { at, actor, act, target, outcome }: NewAdminAct): Promise<number> {
  const [row] = await tx.query<{ act_nid: number }>(
    'INSERT INTO admin_act (at, actor, act, target, outcome) VALUES ($1, $2, $3, $4, $5) RETURNING act_nid',
    [at, actor, act, target, outcome],
  )
  return row!.act_nid
}

export async function setAdminActOutcome(tx: Tx, actNid: number, outcome: string): Promise<void> {
  await tx.query('UPDATE admin_act SET outcome = $2 WHERE act_nid = $1', [actNid, outcome])
}

export interface ActQuery {
  /** Acts before this number. */
  readonly before: number
  readonly limit: number
  readonly actor: string | undefined
  readonly target: string | undefined
}

/** Newest first. */
export function listAdminActs(reader: Reader, query: ActQuery): Promise<AdminActRow[]> {
  return reader.query<AdminActRow>(
    `SELECT act_nid, at, actor, act, target, outcome FROM admin_act
     WHERE act_nid < $1 AND ($3::text IS NULL OR actor = $3) AND ($4::text IS NULL OR target = $4)
     ORDER BY act_nid DESC LIMIT $2`,
    [query.before, query.limit, query.actor ?? null, query.target ?? null],
  )
}
