import type { Reader, Tx } from '../db/db.ts'

// Table: identity_ephemeral_key

export async function insertEphemeralKey(
  tx: Tx,
  key: { readonly publicKey: string; readonly createdAt: number; readonly expiresAt: number | undefined },
): Promise<void> {
  await tx.query('INSERT INTO identity_ephemeral_key (public_key, created_at, expires_at) VALUES ($1, $2, $3)', [
    key.publicKey,
    key.createdAt,
    key.expiresAt ?? null,
  ])
}

export async function isEphemeralKey(reader: Reader, publicKey: string, now: number): Promise<boolean> {
  const rows = await reader.query(
    `SELECT 1 AS one FROM identity_ephemeral_key
     WHERE public_key = $1 AND (expires_at IS NULL OR expires_at > $2)`,
    [publicKey, now],
  )
  return rows.length > 0
}

export async function deleteEphemeralKey(tx: Tx, publicKey: string): Promise<void> {
  await tx.query('DELETE FROM identity_ephemeral_key WHERE public_key = $1', [publicKey])
}

/** Removes keys that have expired. Gives how many. */
export async function forgetEphemeralKeys(tx: Tx, now: number, atMost: number): Promise<number> {
  const rows = await tx.query(
    `DELETE FROM identity_ephemeral_key WHERE public_key = ANY(ARRAY(
       SELECT public_key FROM identity_ephemeral_key WHERE expires_at <= $1 LIMIT $2)) RETURNING 1 AS one`,
    [now, atMost],
  )
  return rows.length
}
