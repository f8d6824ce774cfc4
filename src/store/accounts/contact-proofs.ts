import type { Reader, Tx } from '../db/db.ts'

// Table: contact_proof

export interface ContactProofRow {
  readonly key: Buffer
  /** The validation session, if this server holds it. */
  readonly sid: string | undefined
  readonly shownTo: Buffer
  readonly now: number
}

/** Records the purpose for which a session was presented. False if it was used for another purpose. */
export async function showProof(tx: Tx, proof: ContactProofRow): Promise<boolean> {
  const rows = await tx.query(
    `INSERT INTO contact_proof AS p (key, sid, shown_to, shown_at) VALUES ($1, $2, $3, $4)
     ON CONFLICT (key) DO UPDATE SET shown_to = excluded.shown_to, shown_at = excluded.shown_at
     WHERE p.used_at IS NULL OR p.shown_to = excluded.shown_to RETURNING 1 AS one`,
    [proof.key, proof.sid ?? null, proof.shownTo, proof.now],
  )
  return rows.length === 1
}

/** Uses up a validated session for its purpose. False if it was used for another purpose. */
export async function useProof(tx: Tx, proof: ContactProofRow): Promise<boolean> {
  const rows = await tx.query(
    `INSERT INTO contact_proof AS p (key, sid, shown_to, shown_at, used_at) VALUES ($1, $2, $3, $4, $4)
     ON CONFLICT (key) DO UPDATE SET shown_to = excluded.shown_to, used_at = COALESCE(p.used_at, excluded.used_at)
     WHERE p.used_at IS NULL OR p.shown_to = excluded.shown_to RETURNING 1 AS one`,
    [proof.key, proof.sid ?? null, proof.shownTo, proof.now],
  )
  return rows.length === 1
}

/** This server's sessions that were last presented for this purpose. */
export async function findShownSessions(reader: Reader, shownTo: Buffer): Promise<string[]> {
  const rows = await reader.query<{ sid: string }>(
    'SELECT sid FROM contact_proof WHERE shown_to = $1 AND sid IS NOT NULL ORDER BY shown_at DESC LIMIT 10',
    [shownTo],
  )
  return rows.map(({ sid }) => sid)
}

/** Gives how many were removed, at most so many. */
export async function forgetProofs(tx: Tx, shownBefore: number, atMost: number): Promise<number> {
  const rows = await tx.query(
    `DELETE FROM contact_proof WHERE key = ANY(ARRAY(
       SELECT key FROM contact_proof WHERE shown_at < $1 LIMIT $2)) RETURNING 1 AS one`,
    [shownBefore, atMost],
  )
  return rows.length
}
