import type { RoomId, UserId } from '../../core/ids.ts'
import type { Reader, Tx } from '../db/db.ts'
import type { ThreepidRow } from './bindings.ts'
import { deleteEphemeralKey } from './ephemeral-keys.ts'

// Tables: identity_invite, identity_delivery

export interface PendingInviteRow {
  readonly invite_nid: number
  readonly medium: string
  readonly address: string
  readonly room_id: RoomId
  readonly sender: UserId
  readonly created_at: number
  readonly expires_at: number | null
  /** The user who has bound the address, if a delivery to their homeserver is queued. */
  readonly user_id: UserId | null
  /** The number of failed deliveries. */
  readonly attempts: number | null
  /** Whether delivery was given up. */
  readonly is_given_up: boolean
}

const PENDING = `SELECT i.invite_nid, i.medium, i.address, i.room_id, i.sender, i.created_at, i.expires_at,
       d.user_id, d.attempts, d.delivery_nid IS NOT NULL AND d.due_at IS NULL AS is_given_up
     FROM identity_invite i LEFT JOIN identity_delivery d ON d.delivery_nid = i.delivery_nid`

/** Invitations that are not delivered and not expired, oldest first. */
export async function listPendingInvites(
  reader: Reader,
  { now, after, atMost }: { readonly now: number; readonly after: number; readonly atMost: number },
): Promise<PendingInviteRow[]> {
  return reader.query<PendingInviteRow>(
    `${PENDING}
     WHERE i.invite_nid > $2 AND i.delivered_at IS NULL
       AND (i.expires_at IS NULL OR i.expires_at > $1 OR i.delivery_nid IS NOT NULL)
     ORDER BY i.invite_nid LIMIT $3`,
    [now, after, atMost],
  )
}

/** Removes an undelivered invitation with its key. Gives whether there was one. */
export async function cancelInvite(tx: Tx, inviteNid: number): Promise<boolean> {
  const [row] = await tx.query<{ public_key: string }>(
    'DELETE FROM identity_invite WHERE invite_nid = $1 AND delivered_at IS NULL RETURNING public_key',
    [inviteNid],
  )
  if (row !== undefined) await deleteEphemeralKey(tx, row.public_key)
  return row !== undefined
}

/** The undelivered invitations to an address, oldest first. */
export async function listPendingInvitesTo(
  reader: Reader,
  { medium, address }: ThreepidRow,
): Promise<PendingInviteRow[]> {
  return reader.query<PendingInviteRow>(
    `${PENDING} WHERE i.medium = $1 AND i.address = $2 AND i.delivered_at IS NULL ORDER BY i.invite_nid`,
    [medium, address],
  )
}

/** Those that a user sent. Reads every invitation there is. */
export async function listPendingInvitesBy(reader: Reader, sender: UserId): Promise<PendingInviteRow[]> {
  return reader.query<PendingInviteRow>(
    `${PENDING} WHERE i.sender = $1 AND i.delivered_at IS NULL ORDER BY i.invite_nid`,
    [sender],
  )
}

/** Removes all invitations to an address with their keys, delivered ones included. Gives how many. Needs `lockAddress`. */
export async function deleteInvitesTo(tx: Tx, { medium, address }: ThreepidRow): Promise<number> {
  const rows = await tx.query<{ public_key: string }>(
    'DELETE FROM identity_invite WHERE medium = $1 AND address = $2 RETURNING public_key',
    [medium, address],
  )
  for (const { public_key } of rows) await deleteEphemeralKey(tx, public_key)
  return rows.length
}

/** Removes all invitations that a user sent. */
export async function deleteInvitesBy(tx: Tx, sender: UserId): Promise<number> {
  const rows = await tx.query<{ public_key: string }>(
    'DELETE FROM identity_invite WHERE sender = $1 RETURNING public_key',
    [sender],
  )
  for (const { public_key } of rows) await deleteEphemeralKey(tx, public_key)
  return rows.length
}
