import type { ServerName } from '../../core/ids.ts'
import type { Medium } from '../../core/threepid.ts'
import type { Reader, Tx } from '../db/db.ts'

// Table: delegated_session

export interface DelegatedSessionRow {
  /** SHA-256 of the session's id and its client secret. */
  readonly key: Buffer
  readonly sid: string
  readonly id_server: ServerName
  readonly purpose: string
  readonly medium: Medium
  readonly address: string
  /** Encrypted. */
  readonly token: Buffer
  readonly expires_at: number
}

/** Stores a session, or updates it. */
export async function putDelegatedSession(tx: Tx, session: DelegatedSessionRow): Promise<void> {
  const { key, sid, id_server, purpose, medium, address, token, expires_at } = session
  await tx.query(
    `INSERT INTO delegated_session (key, sid, id_server, purpose, medium, address, token, expires_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
     ON CONFLICT (key) DO UPDATE SET id_server = excluded.id_server, purpose = excluded.purpose, medium = excluded.medium,
       address = excluded.address, token = excluded.token, expires_at = excluded.expires_at`,
    [key, sid, id_server, purpose, medium, address, token, expires_at],
  )
}

export async function findDelegatedSession(reader: Reader, key: Buffer): Promise<DelegatedSessionRow | undefined> {
  const [row] = await reader.query<DelegatedSessionRow>('SELECT * FROM delegated_session WHERE key = $1', [key])
  return row
}

/** Gives how many were removed, at most so many. */
export async function forgetDelegatedSessions(tx: Tx, now: number, atMost: number): Promise<number> {
  const rows = await tx.query(
    `DELETE FROM delegated_session WHERE key = ANY(ARRAY(
       SELECT key FROM delegated_session WHERE expires_at <= $1 LIMIT $2)) RETURNING 1 AS one`,
    [now, atMost],
  )
  return rows.length
}
