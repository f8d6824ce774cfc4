import { ProtocolError } from '../../core/errors.ts'
import type { EventId } from '../../core/ids.ts'
import type { JsonObject } from '../../core/json.ts'
import { parseExact } from '../../core/large-integers.ts'
import { findAccountByNid } from '../../store/accounts/accounts.ts'
import type { Database } from '../../store/db/db.ts'
import type { DelayedEventRow } from '../../store/rooms/delayed-events.ts'
import { accountLocked, accountSuspended, type Requester } from '../accounts/requester.ts'
import type { RateLimits } from '../rate-limits.ts'
import type { Rooms } from '../rooms/act/rooms.ts'
import { delayedScope } from '../rooms/room/client-event.ts'

export interface DelayedSendingParts {
  readonly db: Database
  readonly rooms: Pick<Rooms, 'send' | 'setState'>
  readonly rateLimits: RateLimits
}

/**
 * Sends a delayed event as its user would send it now: with their rights, restraints and rate limit of now. Sent a second time, after a
 * crash, it gives the first event.
 */
export type SendDelayed = (row: DelayedEventRow) => Promise<EventId>

export function createDelayedSending({ db, rooms, rateLimits }: DelayedSendingParts): SendDelayed {
  async function senderOf({ user_nid }: DelayedEventRow): Promise<Requester> {
    const account = await findAccountByNid(db, user_nid)
    if (account === undefined || account.deactivated_at !== null) {
      throw new ProtocolError('M_USER_DEACTIVATED', 'The account of this delayed event is deactivated.')
    }
    if (account.is_locked) throw accountLocked()
    if (account.is_suspended) throw accountSuspended()
    const { user_id: userId, is_guest: isGuest } = account
    return { userId, userNid: user_nid, deviceId: '', tokenNid: delayedScope(user_nid), isGuest }
  }

  return async (row) => {
    const by = await senderOf(row)
    if (!row.is_unlimited) rateLimits.take('message', row.user_nid)
    const { delay_id, room_id, type, state_key, ts, sticky_ms: stickyMs } = row
    const content = parseExact(row.content) as JsonObject
    const sent = {
      content,
      offence: row.offence ?? undefined,
      ...(ts !== null && { ts }),
      ...(stickyMs !== null && { stickyMs }),
    }
    const once = { txnId: delay_id, path: `delayed_events/${delay_id}` }
    return state_key === null
      ? rooms.send(by, room_id, type, sent, once)
      : rooms.setState(by, room_id, type, state_key, sent, once)
  }
}
