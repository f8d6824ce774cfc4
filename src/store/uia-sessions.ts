import type { Reader, Tx } from './db.ts'

// Table: uia_session

export interface UiaSessionRow {
  readonly session_id: string
  readonly operation: string
  readonly body_hash: Buffer | null
  /** JSON: stage to what it established. */
  readonly completed: string
}

/** Stores a new session, and removes a few that are older than `expiredBefore`. */
export async function insertUiaSession(
  tx: Tx,
  session: { readonly sessionId: string; readonly operation: string; readonly createdAt: number },
  expiredBefore: number,
): Promise<void> {
  await tx.query(
    `DELETE FROM uia_session WHERE session_id IN (
       SELECT session_id FROM uia_session WHERE created_at < $1 LIMIT 10 FOR UPDATE SKIP LOCKED)`,
    [expiredBefore],
  )
  await tx.query(`INSERT INTO uia_session (session_id, operation, completed, created_at) VALUES ($1, $2, '{}', $3)`, [
    session.sessionId,
    session.operation,
    session.createdAt,
  ])
}

/** The session, its row locked until the transaction ends. */
export async function lockUiaSession(tx: Tx, sessionId: string, notBefore: number): Promise<UiaSessionRow | undefined> {
  const [row] = await tx.query<UiaSessionRow>(
    `SELECT session_id, operation, body_hash, completed FROM uia_session
     WHERE session_id = $1 AND created_at >= $2 FOR UPDATE`,
    [sessionId, notBefore],
  )
  return row
}

export async function findUiaSession(
  reader: Reader,
  sessionId: string,
  notBefore: number,
): Promise<UiaSessionRow | undefined> {
  const [row] = await reader.query<UiaSessionRow>(
    `SELECT session_id, operation, body_hash, completed FROM uia_session WHERE session_id = $1 AND created_at >= $2`,
    [sessionId, notBefore],
  )
  return row
}

export async function updateUiaSession(tx: Tx, sessionId: string, bodyHash: Buffer, completed: string): Promise<void> {
  await tx.query('UPDATE uia_session SET body_hash = $2, completed = $3 WHERE session_id = $1', [
    sessionId,
    bodyHash,
    completed,
  ])
}

export async function deleteUiaSession(tx: Tx, sessionId: string): Promise<void> {
  await tx.query('DELETE FROM uia_session WHERE session_id = $1', [sessionId])
}
