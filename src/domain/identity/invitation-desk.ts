import { ProtocolError } from '../../core/errors.ts'
import type { RoomId, UserId } from '../../core/ids.ts'
import type { Database } from '../../store/db/db.ts'
import { cancelInvite, listPendingInvites, type PendingInviteRow } from '../../store/identity/pending-invites.ts'
import type { Clock } from '../clock.ts'

/** An invitation of an address, as operators see it. Times are in milliseconds. */
export interface PendingInvitation {
  readonly id: number
  readonly medium: string
  readonly address: string
  readonly room_id: RoomId
  readonly sender: UserId
  readonly created_ts: number
  /** Null if it does not expire. */
  readonly expires_ts: number | null
  /** It waits for somebody to bind the address, or it is being delivered, or the delivery failed for too long. */
  readonly state: 'waiting' | 'delivering' | 'undeliverable'
  /** The user who has bound the address. */
  readonly bound_to: UserId | null
  /** Failed deliveries. */
  readonly attempts: number
}

/** Invitations that no homeserver has accepted yet. */
export interface InvitationDesk {
  /** A page of them, the oldest first. @param from the `next_from` of the page before */
  list(page: { readonly from?: number | undefined; readonly limit?: number | undefined }): Promise<{
    readonly invitations: readonly PendingInvitation[]
    readonly next_from?: number
  }>
  /** Invalidates its token and its key. @throws ProtocolError `M_NOT_FOUND` */
  cancel(id: number): Promise<void>
}

const DEFAULT_LIMIT = 100
const MAX_LIMIT = 1_000

export function viewOf(row: PendingInviteRow): PendingInvitation {
  const { invite_nid, medium, address, room_id, sender, created_at, expires_at, user_id, attempts } = row
  return {
    ...{ id: invite_nid, medium, address, room_id, sender, created_ts: created_at, expires_ts: expires_at },
    state: user_id === null ? 'waiting' : row.is_given_up ? 'undeliverable' : 'delivering',
    ...{ bound_to: user_id, attempts: attempts ?? 0 },
  }
}

export function createInvitationDesk({ db, clock }: { readonly db: Database; readonly clock: Clock }): InvitationDesk {
  return {
    async list({ from = 0, limit = DEFAULT_LIMIT }) {
      const atMost = Math.min(Math.max(limit, 1), MAX_LIMIT)
      const rows = await listPendingInvites(db, { now: clock.now(), after: from, atMost })
      const last = rows.at(-1)
      return {
        invitations: rows.map(viewOf),
        ...(last !== undefined && rows.length === atMost ? { next_from: last.invite_nid } : {}),
      }
    },
    async cancel(id) {
      if (!Number.isSafeInteger(id) || !(await db.tx((tx) => cancelInvite(tx, id))))
        throw new ProtocolError('M_NOT_FOUND', 'There is no such invitation, or a homeserver has taken it.')
    },
  }
}
