import type { RoomId, UserId } from '../../core/ids.ts'
import type { Reader, Tx } from '../db/db.ts'
import type { ThreepidRow } from './bindings.ts'
import { deleteEphemeralKey } from './ephemeral-keys.ts'

// Tables: identity_invite, identity_delivery

export interface InviteRow extends ThreepidRow {
  readonly token: string
  readonly room_id: RoomId
  readonly sender: UserId
  readonly display_name: string
  readonly public_key: string
  /** JSON. */
  readonly details: string
  readonly created_at: number
  readonly expires_at: number | null
}

export interface DeliveryRow extends ThreepidRow {
  readonly delivery_nid: number
  readonly user_id: UserId
  /** JSON. */
  readonly association: string
  readonly created_at: number
  readonly attempts: number
}

/** Needs `lockAddress`. */
export async function insertInvite(tx: Tx, invite: InviteRow): Promise<void> {
  await tx.query(
    `INSERT INTO identity_invite
       (token, medium, address, room_id, sender, display_name, public_key, details, created_at, expires_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
    [
      ...[invite.token, invite.medium, invite.address, invite.room_id, invite.sender, invite.display_name],
      ...[invite.public_key, invite.details, invite.created_at, invite.expires_at],
    ],
  )
}

/** Removes an invitation and its key, unless the address was bound meanwhile. Gives whether it was removed. */
export async function deleteWaitingInvite(tx: Tx, token: string): Promise<boolean> {
  const [row] = await tx.query<{ public_key: string }>(
    `DELETE FROM identity_invite WHERE token = $1 AND delivery_nid IS NULL AND delivered_at IS NULL RETURNING public_key`,
    [token],
  )
  if (row === undefined) return false
  await deleteEphemeralKey(tx, row.public_key)
  return true
}

export async function findInviteSender(reader: Reader, token: string, now: number): Promise<UserId | undefined> {
  const [row] = await reader.query<{ sender: UserId }>(
    'SELECT sender FROM identity_invite WHERE token = $1 AND (expires_at IS NULL OR expires_at > $2)',
    [token, now],
  )
  return row?.sender
}

/**
 * Queues the invitations to an address for delivery to the homeserver of the user who has just bound it. Gives whether there were any.
 * Includes deliveries that were queued for another user or given up. Needs `lockAddress`.
 */
export async function handOverInvites(
  tx: Tx,
  bound: ThreepidRow & { readonly user_id: UserId; readonly association: string; readonly now: number },
): Promise<boolean> {
  const { medium, address, user_id, association, now } = bound
  await tx.query(
    'DELETE FROM identity_delivery WHERE medium = $1 AND address = $2 AND (user_id <> $3 OR due_at IS NULL)',
    [medium, address, user_id],
  )
  const [delivery] = await tx.query<{ delivery_nid: number }>(
    `INSERT INTO identity_delivery (medium, address, user_id, association, created_at, due_at)
     SELECT $1, $2, $3, $4, $5, $5 WHERE EXISTS (
       SELECT 1 FROM identity_invite WHERE medium = $1 AND address = $2 AND delivered_at IS NULL
         AND delivery_nid IS NULL AND (expires_at IS NULL OR expires_at > $5))
     RETURNING delivery_nid`,
    [medium, address, user_id, association, now],
  )
  if (delivery === undefined) return false
  await tx.query(
    `UPDATE identity_invite SET delivery_nid = $3 WHERE medium = $1 AND address = $2 AND delivered_at IS NULL
       AND delivery_nid IS NULL AND (expires_at IS NULL OR expires_at > $4)`,
    [medium, address, delivery.delivery_nid, now],
  )
  return true
}

/** Removes the queued deliveries of an address; the invitations wait for its next binding. Needs `lockAddress`. */
export async function withdrawDeliveries(tx: Tx, { medium, address }: ThreepidRow): Promise<void> {
  await tx.query('DELETE FROM identity_delivery WHERE medium = $1 AND address = $2', [medium, address])
}

/** Leases due deliveries until `until`. */
export async function claimDeliveries(tx: Tx, now: number, until: number, atMost: number): Promise<DeliveryRow[]> {
  return tx.query<DeliveryRow>(
    `UPDATE identity_delivery SET attempts = attempts + 1, due_at = $2 WHERE delivery_nid = ANY(ARRAY(
       SELECT delivery_nid FROM identity_delivery WHERE due_at <= $1 ORDER BY due_at LIMIT $3 FOR UPDATE SKIP LOCKED))
     RETURNING delivery_nid, medium, address, user_id, association, created_at, attempts`,
    [now, until, atMost],
  )
}

/** When the next delivery is due. */
export async function findNextDueDelivery(reader: Reader): Promise<number | undefined> {
  const [row] = await reader.query<{ due_at: number | null }>('SELECT min(due_at) AS due_at FROM identity_delivery')
  return row?.due_at ?? undefined
}

export async function findInvitesOf(reader: Reader, deliveryNid: number): Promise<InviteRow[]> {
  return reader.query<InviteRow>(
    `SELECT token, medium, address, room_id, sender, display_name, public_key, details, created_at, expires_at
     FROM identity_invite WHERE delivery_nid = $1 ORDER BY invite_nid`,
    [deliveryNid],
  )
}

/** Marks invitations as delivered, so that they are never delivered again. Gives how many. */
export async function markDelivered(tx: Tx, deliveryNid: number, now: number): Promise<number> {
  const rows = await tx.query(
    'UPDATE identity_invite SET delivered_at = $2 WHERE delivery_nid = $1 RETURNING 1 AS one',
    [deliveryNid, now],
  )
  await tx.query('DELETE FROM identity_delivery WHERE delivery_nid = $1', [deliveryNid])
  return rows.length
}

/** @param dueAt undefined: never again */
export async function postponeDelivery(tx: Tx, deliveryNid: number, dueAt: number | undefined): Promise<void> {
  await tx.query('UPDATE identity_delivery SET due_at = $2 WHERE delivery_nid = $1', [deliveryNid, dueAt ?? null])
}

/** Removes invitations that ended before now, or were delivered before a moment. Gives how many. */
export async function forgetInvites(tx: Tx, now: number, deliveredBefore: number, atMost: number): Promise<number> {
  const rows = await tx.query(
    `DELETE FROM identity_invite WHERE invite_nid = ANY(ARRAY(
       SELECT invite_nid FROM identity_invite
       WHERE (expires_at <= $1 AND delivery_nid IS NULL) OR delivered_at <= $2 LIMIT $3)) RETURNING 1 AS one`,
    [now, deliveredBefore, atMost],
  )
  return rows.length
}
