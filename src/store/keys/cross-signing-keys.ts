import type { Reader, Tx } from '../db/db.ts'

// Tables: cross_signing_key, key_signature

export interface CrossSigningKeyRow {
  readonly user_nid: number
  readonly usage: 'master' | 'self_signing' | 'user_signing'
  readonly public_key: string
  readonly json: string
  readonly signature: string | null
  readonly empty_signatures: string | null
}

export function crossSigningKeysOf(reader: Reader, userNids: readonly number[]): Promise<CrossSigningKeyRow[]> {
  return reader.query<CrossSigningKeyRow>(
    `SELECT user_nid, usage, public_key, json, signature, empty_signatures FROM cross_signing_key
     WHERE user_nid = ANY($1::bigint[])`,
    [userNids],
  )
}

export interface NewCrossSigningKey {
  readonly userNid: number
  readonly usage: CrossSigningKeyRow['usage']
  readonly publicKey: string
  readonly json: string
  readonly signature: string | null
  readonly emptySignatures: string | null
}

const INSERT = `INSERT INTO cross_signing_key (user_nid, usage, public_key, json, signature, empty_signatures)
  VALUES ($1, $2, $3, $4, $5, $6)`

function keyValues({ userNid, usage, publicKey, json, signature, emptySignatures }: NewCrossSigningKey) {
  return [userNid, usage, publicKey, json, signature, emptySignatures]
}

/** Stores a key; false when there is one already. */
export async function insertCrossSigningKey(tx: Tx, key: NewCrossSigningKey): Promise<boolean> {
  const rows = await tx.query(`${INSERT} ON CONFLICT (user_nid, usage) DO NOTHING RETURNING usage`, keyValues(key))
  return rows.length === 1
}

/** Replaces a key, and removes the signatures by and of the old one. */
export async function replaceCrossSigningKey(tx: Tx, key: NewCrossSigningKey): Promise<void> {
  await Promise.all([deleteCrossSigningKeys(tx, key.userNid, [key.usage]), tx.query(INSERT, keyValues(key))])
}

/** Removes keys of a user, and all signatures by and of them. Gives whether there were any. */
export async function deleteCrossSigningKeys(
  tx: Tx,
  userNid: number,
  usages: readonly CrossSigningKeyRow['usage'][],
): Promise<boolean> {
  const rows = await tx.query(
    `WITH gone AS (
       DELETE FROM cross_signing_key WHERE user_nid = $1 AND usage = ANY($2::text[]) RETURNING public_key
     ), signed AS (
       DELETE FROM key_signature WHERE target_nid = $1 AND target IN (SELECT public_key FROM gone)
     ), signing AS (
       DELETE FROM key_signature WHERE signer_nid = $1 AND signer_key IN (SELECT 'ed25519:' || public_key FROM gone)
     )
     SELECT public_key FROM gone`,
    [userNid, usages],
  )
  return rows.length > 0
}

export interface KeySignatureRow {
  readonly target_nid: number
  /** A device id or a public key. */
  readonly target: string
  readonly signer_nid: number
  readonly signer_key: string
  readonly signature: string
}

/** Signatures of users' keys: by the users themselves, and by the viewer. */
export function keySignaturesOf(
  reader: Reader,
  userNids: readonly number[],
  viewerNid: number,
): Promise<KeySignatureRow[]> {
  return reader.query<KeySignatureRow>(
    `SELECT target_nid, target, signer_nid, signer_key, signature FROM key_signature
     WHERE target_nid = ANY($1::bigint[]) AND (signer_nid = target_nid OR signer_nid = $2)`,
    [userNids, viewerNid],
  )
}

/** Stores signatures; gives how many are new. */
export async function storeKeySignatures(
  tx: Tx,
  signatures: readonly KeySignatureRow[],
  position: number,
): Promise<number> {
  const rows = await tx.query(
    `INSERT INTO key_signature (target_nid, target, signer_nid, signer_key, signature, position)
     SELECT *, $6 FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::text[], $5::text[])
     ON CONFLICT (target_nid, target, signer_nid, signer_key)
     DO UPDATE SET signature = EXCLUDED.signature, position = EXCLUDED.position
     WHERE key_signature.signature <> EXCLUDED.signature
     RETURNING signer_key`,
    [
      signatures.map((row) => row.target_nid),
      signatures.map((row) => row.target),
      signatures.map((row) => row.signer_nid),
      signatures.map((row) => row.signer_key),
      signatures.map((row) => row.signature),
      position,
    ],
  )
  return rows.length
}
