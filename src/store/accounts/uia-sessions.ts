import type { Reader, Tx } from '../db/db.ts'

// Table: uia_session

export interface UiaSessionRow {
  readonly session_id: string
  readonly operation: string
  readonly user_nid: number | null
  readonly body_hash: Buffer | null
  /** The first request's body, sealed. */
  readonly body: Buffer | null
  /** JSON: the result of each completed stage. */
  readonly completed: string
  /** JSON: lists of stages. */
  readonly flows: string
}

const COLUMNS = 'session_id, operation, user_nid, body_hash, body, completed, flows'

export interface NewUiaSession {
  readonly sessionId: string
  readonly operation: string
  /** One of the two is undefined. */
  readonly userNid: number | undefined
  readonly address: string | undefined
  readonly bodyHash: Buffer | undefined
  readonly body: Buffer | undefined
  readonly flows: string
  readonly createdAt: number
}

/** Stores a new session; of its owner's sessions the newest `keep` stay, and those that are locked: somebody is just going on with them. */
export async function insertUiaSession(tx: Tx, session: NewUiaSession, keep: number): Promise<void> {
  const { sessionId, operation, userNid, address, bodyHash, body, flows, createdAt } = session
  await tx.query(
    `INSERT INTO uia_session (session_id, operation, user_nid, address, body_hash, flows, completed, created_at, body)
     VALUES ($1, $2, $3, $4, $5, $6, '{}', $7, $8)`,
    [sessionId, operation, userNid ?? null, address ?? null, bodyHash ?? null, flows, createdAt, body ?? null],
  )
  // Only the inner query skips the newest: a lock there would be one for each of them too.
  await tx.query(
    `DELETE FROM uia_session WHERE session_id IN (
       SELECT session_id FROM uia_session WHERE session_id IN (
         SELECT session_id FROM uia_session WHERE ${userNid === undefined ? 'address' : 'user_nid'} = $1
         ORDER BY created_at DESC, session_id OFFSET $2)
       FOR UPDATE SKIP LOCKED)`,
    [userNid ?? address, keep],
  )
}

/** Counts unfinished sessions, no further than `atMost`. */
export async function countUiaSessions(reader: Reader, atMost: number): Promise<number> {
  const [row] = await reader.query<{ count: number }>(
    'SELECT count(*)::int AS count FROM (SELECT 1 FROM uia_session WHERE outcome IS NULL LIMIT $1) s',
    [atMost],
  )
  return row!.count
}

/** Removes all unfinished sessions but so many of the newest. Locked ones stay: somebody is just going on with them. */
export async function deleteOldestUiaSessions(tx: Tx, kept: number): Promise<void> {
  // Only the inner query skips the newest: a lock there would be one for each of them too.
  await tx.query(
    `DELETE FROM uia_session WHERE session_id IN (
       SELECT session_id FROM uia_session WHERE session_id IN (
         SELECT session_id FROM uia_session WHERE outcome IS NULL ORDER BY created_at DESC, session_id OFFSET $1)
       FOR UPDATE SKIP LOCKED)`,
    [kept],
  )
}

/** The session, its row locked until the transaction ends. */
export async function lockUiaSession(tx: Tx, sessionId: string, notBefore: number): Promise<UiaSessionRow | undefined> {
  const [row] = await tx.query<UiaSessionRow>(
    `SELECT ${COLUMNS} FROM uia_session WHERE session_id = $1 AND created_at >= $2 AND outcome IS NULL FOR UPDATE`,
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
    `SELECT ${COLUMNS} FROM uia_session WHERE session_id = $1 AND created_at >= $2 AND outcome IS NULL`,
    [sessionId, notBefore],
  )
  return row
}

/** Counts an attempt at a stage; false when there were `atMost` already. */
export async function countUiaAttempt(tx: Tx, sessionId: string, atMost: number): Promise<boolean> {
  const rows = await tx.query(
    'UPDATE uia_session SET attempts = attempts + 1 WHERE session_id = $1 AND attempts < $2 RETURNING 1 AS one',
    [sessionId, atMost],
  )
  return rows.length === 1
}

export async function updateUiaSession(
  tx: Tx,
  sessionId: string,
  state: {
    readonly bodyHash: Buffer | undefined
    /** Undefined leaves the one that is there. */
    readonly body: Buffer | undefined
    readonly completed: string
    readonly flows: string
  },
): Promise<void> {
  const { bodyHash, body, completed, flows } = state
  await tx.query(
    'UPDATE uia_session SET body_hash = $2, completed = $3, flows = $4, body = COALESCE($5, body) WHERE session_id = $1',
    [sessionId, bodyHash ?? null, completed, flows, body ?? null],
  )
}

export interface UiaOutcomeRow {
  readonly body_hash: Buffer
  /** JSON: the result of the request. */
  readonly outcome: string
}

/** Replaces a finished session by its result. */
export async function insertUiaOutcome(
  tx: Tx,
  finished: {
    readonly sessionId: string
    readonly operation: string
    readonly bodyHash: Buffer
    readonly outcome: string
    readonly createdAt: number
  },
): Promise<void> {
  const { sessionId, operation, bodyHash, outcome, createdAt } = finished
  await tx.query(
    `INSERT INTO uia_session (session_id, operation, body_hash, completed, created_at, outcome)
     VALUES ($1, $2, $3, '{}', $4, $5) ON CONFLICT DO NOTHING`,
    [sessionId, operation, bodyHash, createdAt, outcome],
  )
}

export async function findUiaOutcome(
  reader: Reader,
  sessionId: string,
  notBefore: number,
): Promise<UiaOutcomeRow | undefined> {
  const [row] = await reader.query<UiaOutcomeRow>(
    'SELECT body_hash, outcome FROM uia_session WHERE session_id = $1 AND created_at >= $2 AND outcome IS NOT NULL',
    [sessionId, notBefore],
  )
  return row
}

export async function deleteUiaSession(tx: Tx, sessionId: string): Promise<void> {
  await tx.query('DELETE FROM uia_session WHERE session_id = $1', [sessionId])
}

/** Removes at most so many sessions from before a moment, and gives how many. */
export async function forgetUiaSessions(tx: Tx, before: number, atMost: number): Promise<number> {
  const rows = await tx.query(
    `DELETE FROM uia_session WHERE session_id IN (
       SELECT session_id FROM uia_session WHERE created_at < $1 ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED)
     RETURNING 1 AS one`,
    [before, atMost],
  )
  return rows.length
}
