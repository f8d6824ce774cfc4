import type { Reader, Tx } from '../db/db.ts'

// Table: sso_flow

/** Identifies a flow. All of it is needed; the hashed secrets are known only to the browser that began the flow. */
export interface FlowKey {
  readonly flowHash: Buffer
  readonly browserHash: Buffer
  /** Whether the provider has answered. */
  readonly isAnswered: boolean
}

export interface FlowRow {
  readonly provider: string
  /** JSON */
  readonly purpose: string
  /** JSON, or null while the person is at the provider. */
  readonly person: string | null
  readonly started_at: number
}

const COLUMNS = 'provider, purpose, person, started_at'
const THIS_FLOW = 'flow_hash = $1 AND browser_hash = $2 AND (person IS NOT NULL) = $3 AND expires_at > $4'

export async function insertFlow(
  tx: Tx,
  { flowHash, browserHash }: Pick<FlowKey, 'flowHash' | 'browserHash'>,
  flow: {
    readonly provider: string
    readonly purpose: string
    readonly person: string | undefined
    readonly startedAt: number
    readonly expiresAt: number
  },
): Promise<void> {
  await tx.query(
    `INSERT INTO sso_flow (flow_hash, browser_hash, provider, purpose, person, started_at, expires_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7)`,
    [flowHash, browserHash, flow.provider, flow.purpose, flow.person ?? null, flow.startedAt, flow.expiresAt],
  )
}

export async function findFlow(reader: Reader, key: FlowKey, now: number): Promise<FlowRow | undefined> {
  const [row] = await reader.query<FlowRow>(`SELECT ${COLUMNS} FROM sso_flow WHERE ${THIS_FLOW}`, [
    key.flowHash,
    key.browserHash,
    key.isAnswered,
    now,
  ])
  return row
}

/** Removes a flow and returns it; if several callers try at once, one gets it. */
export async function takeFlow(tx: Tx, key: FlowKey, now: number): Promise<FlowRow | undefined> {
  const [row] = await tx.query<FlowRow>(`DELETE FROM sso_flow WHERE ${THIS_FLOW} RETURNING ${COLUMNS}`, [
    key.flowHash,
    key.browserHash,
    key.isAnswered,
    now,
  ])
  return row
}

/** How many the other service has not answered, `atMost` so many. */
export async function countUnanswered(reader: Reader, atMost: number): Promise<number> {
  const [row] = await reader.query<{ count: number }>(
    'SELECT count(*)::int AS count FROM (SELECT 1 FROM sso_flow WHERE person IS NULL LIMIT $1) s',
    [atMost],
  )
  return row!.count
}

/** Removes all of them but so many that expire last. */
export async function deleteOldestUnanswered(tx: Tx, kept: number): Promise<void> {
  await tx.query(
    `DELETE FROM sso_flow WHERE person IS NULL AND flow_hash IN (
       SELECT flow_hash FROM sso_flow WHERE person IS NULL ORDER BY expires_at DESC OFFSET $1)`,
    [kept],
  )
}

/** Gives how many were removed. */
export async function forgetFlows(tx: Tx, now: number, atMost: number): Promise<number> {
  const rows = await tx.query(
    `DELETE FROM sso_flow WHERE flow_hash = ANY(ARRAY(
       SELECT flow_hash FROM sso_flow WHERE expires_at <= $1 LIMIT $2)) RETURNING 1 AS one`,
    [now, atMost],
  )
  return rows.length
}
