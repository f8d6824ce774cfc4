import type { Tx } from '../db/db.ts'
import { crossSigningKeysOf, deleteCrossSigningKeys } from '../keys/cross-signing-keys.ts'
import type { CrossSigningIdentity, Undone } from './undone.ts'

// Tables: cross_signing_key, key_signature, account_data, restored_user, key_backup, blocked_room; read: account, device, ledger

type OfKind<K extends Undone[0]> = Extract<Undone, readonly [K, ...unknown[]]>

/**
 * Gives a user the newest cross-signing keys instead of those of the backup, which the user had given up: perhaps because somebody else had
 * them. What was signed by the old ones counts no more. Gives 0 for a user whom the backup does not know.
 */
export async function setIdentity(tx: Tx, userNid: number, identity: CrossSigningIdentity): Promise<number> {
  const { keys, signatures, secrets } = identity
  const known = await tx.query('SELECT 1 AS one FROM account WHERE user_nid = $1', [userNid])
  if (known.length === 0) return 0
  const stored = await crossSigningKeysOf(tx, [userNid])
  const old = stored.filter(({ public_key }) => !keys.some((key) => key.public_key === public_key))
  await deleteCrossSigningKeys(
    tx,
    userNid,
    old.map(({ usage }) => usage),
  )
  await tx.query(
    `INSERT INTO cross_signing_key (user_nid, usage, public_key, json, signature, empty_signatures)
     SELECT $1, * FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::text[])
     ON CONFLICT (user_nid, usage) DO UPDATE SET public_key = excluded.public_key, json = excluded.json,
       signature = excluded.signature, empty_signatures = excluded.empty_signatures`,
    [
      ...[userNid, keys.map((key) => key.usage), keys.map((key) => key.public_key), keys.map((key) => key.json)],
      ...[keys.map((key) => key.signature), keys.map((key) => key.empty_signatures)],
    ],
  )
  // Devices that were added since are lost.
  await tx.query(
    `INSERT INTO key_signature (target_nid, target, signer_nid, signer_key, signature, position)
     SELECT $1, s.target, $1, s.signer_key, s.signature, (SELECT position FROM ledger)
     FROM unnest($2::text[], $3::text[], $4::text[]) AS s (target, signer_key, signature)
     WHERE s.target IN (SELECT device_id FROM device WHERE user_nid = $1 UNION SELECT public_key FROM cross_signing_key WHERE user_nid = $1)
     ON CONFLICT (target_nid, target, signer_nid, signer_key) DO UPDATE SET signature = excluded.signature`,
    [
      ...[userNid, signatures.map(({ target }) => target), signatures.map(({ signer_key }) => signer_key)],
      signatures.map(({ signature }) => signature),
    ],
  )
  // Else the recovery key of the user would bring back the private halves of the old ones.
  await tx.query(
    `INSERT INTO account_data (user_nid, room_id, type, content, position)
     SELECT $1, '', type, content, (SELECT position FROM ledger) FROM unnest($2::text[], $3::text[]) AS s (type, content)
     ON CONFLICT (user_nid, room_id, type) DO UPDATE SET content = excluded.content, position = excluded.position, is_deleted = false`,
    [userNid, secrets.map(({ type }) => type), secrets.map(({ content }) => content)],
  )
  await tx.query('INSERT INTO restored_user (user_nid) VALUES ($1) ON CONFLICT DO NOTHING', [userNid])
  return 1
}

export async function deleteBackupsOfKeys(tx: Tx, backups: readonly OfKind<'key_backup'>[]): Promise<number> {
  const rows = await tx.query(
    `DELETE FROM key_backup b USING unnest($1::bigint[], $2::bigint[]) AS n (user_nid, version)
     WHERE b.user_nid = n.user_nid AND b.version = n.version RETURNING 1 AS one`,
    [backups.map(([, user]) => user), backups.map(([, , version]) => version)],
  )
  return rows.length
}

/** Blocks rooms that are blocked now, and frees those that are not. */
export async function setBlocks(tx: Tx, rooms: readonly OfKind<'block'>[]): Promise<number> {
  const blocked = rooms.flatMap(([, roomId, block]) => (block ? [{ roomId, ...block }] : []))
  const made = await tx.query(
    `INSERT INTO blocked_room (room_id, blocked_by, blocked_at) SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[])
     ON CONFLICT DO NOTHING RETURNING 1 AS one`,
    [
      blocked.map(({ roomId }) => roomId),
      blocked.map(({ blocked_by }) => blocked_by),
      blocked.map(({ blocked_at }) => blocked_at),
    ],
  )
  const freed = await tx.query('DELETE FROM blocked_room WHERE room_id = ANY($1::text[]) RETURNING 1 AS one', [
    rooms.flatMap(([, roomId, block]) => (block === null ? [roomId] : [])),
  ])
  return made.length + freed.length
}
