import { ProtocolError } from '../../core/errors.ts'
import type { EventId, RoomId } from '../../core/ids.ts'
import { isObject, type JsonObject } from '../../core/json.ts'
import type { Database } from '../../store/db/db.ts'
import type { Ledger } from '../../store/db/ledger.ts'
import {
  findThreadSubscription,
  subscribeToThread,
  threadSubscriptionsBetween,
  type UsersThread,
  unsubscribeFromThread,
} from '../../store/rooms/thread-subscriptions.ts'
import type { Waker } from '../accounts/account-data.ts'
import type { Requester } from '../accounts/requester.ts'
import {
  MAX_THREAD_SUBSCRIPTIONS,
  MAX_THREAD_SUBSCRIPTIONS_PER_PAGE,
  THREAD_SUBSCRIPTIONS_PER_PAGE,
} from '../limits/threads.ts'
import type { RoomAccess } from '../rooms/room/room-access.ts'
import type { RoomEvent } from '../rooms/room/room-event.ts'
import type { ThreadFollowers } from './thread-followers.ts'

/** Positions of the ledger. */
export interface SubscriptionsQuery {
  /** Newest change wanted; undefined for all. */
  readonly from: number | undefined
  /** Changes up to here are known already. */
  readonly to: number | undefined
  readonly limit: number | undefined
}

/**
 * The threads that a user follows (MSC4306), and the list of changes of them (MSC4308).
 *
 * All methods throw `M_FORBIDDEN` or `M_NOT_FOUND` for a thread whose root the user cannot see.
 */
export interface ThreadSubscriptions {
  /** @throws ProtocolError `M_NOT_FOUND` if the user does not follow the thread */
  get(by: Requester, roomId: RoomId, rootId: EventId): Promise<{ automatic: boolean }>
  /**
   * Subscribes a user.
   *
   * @param cause the event of the thread for which a client subscribes by itself; undefined if the user wanted it
   * @throws ProtocolError `IO.ELEMENT.MSC4306.M_NOT_IN_THREAD`; `IO.ELEMENT.MSC4306.M_CONFLICTING_UNSUBSCRIPTION` if the user unsubscribed
   * after the cause; `M_FORBIDDEN` if the user has too many
   */
  subscribe(by: Requester, roomId: RoomId, rootId: EventId, cause: EventId | undefined): Promise<void>
  unsubscribe(by: Requester, roomId: RoomId, rootId: EventId): Promise<void>
  /** Calls `listener` for each subscription that was made, before it is answered. */
  onSubscribed(listener: (by: Requester) => Promise<void>): void
  /** The changes, newest first, by room and root. `end`, to go on from, is absent on the last page. */
  list(by: Requester, query: SubscriptionsQuery): Promise<JsonObject>
}

export function createThreadSubscriptions(parts: {
  readonly db: Database
  readonly ledger: Ledger
  readonly access: Pick<RoomAccess, 'mustSee'>
  readonly followers: Pick<ThreadFollowers, 'changed' | 'forgetAll'>
  /** Wakes the user's syncs. */
  readonly waker: Waker
}): ThreadSubscriptions {
  const { db, ledger, access, followers, waker } = parts
  const listeners: ((by: Requester) => Promise<void>)[] = []
  ledger.onMissed(followers.forgetAll)

  function changed(thread: UsersThread, isFollowed: boolean, position: number): void {
    followers.changed(thread, isFollowed)
    waker.wakeUsers([thread.userNid], position)
  }

  async function find(by: Requester, roomId: RoomId, rootId: EventId) {
    const { room } = await access.mustSee(by, roomId, rootId)
    const thread: UsersThread = { userNid: by.userNid, roomNid: room.nid, rootId }
    return { room, thread }
  }

  return {
    async get(by, roomId, rootId) {
      const { thread } = await find(by, roomId, rootId)
      const row = await findThreadSubscription(db, thread)
      if (!row?.is_subscribed) throw new ProtocolError('M_NOT_FOUND', 'You do not follow this thread.')
      return { automatic: row.is_automatic }
    },

    async subscribe(by, roomId, rootId, cause) {
      const { thread } = await find(by, roomId, rootId)
      if (cause !== undefined) {
        const { event } = await access.mustSee(by, roomId, cause)
        if (!isInThread(event, rootId)) {
          throw new ProtocolError(
            'IO.ELEMENT.MSC4306.M_NOT_IN_THREAD',
            "'automatic' names an event outside this thread.",
          )
        }
        const row = await findThreadSubscription(db, thread)
        // What the user wanted stays what they wanted.
        if (row?.is_subscribed) return
        if (event.pos <= (row?.unsubscribed_pos ?? Number.NEGATIVE_INFINITY)) {
          throw new ProtocolError(
            'IO.ELEMENT.MSC4306.M_CONFLICTING_UNSUBSCRIPTION',
            'You unsubscribed from this thread after that event.',
          )
        }
      }
      const isDone = await ledger.append(
        (tx, position) => subscribeToThread(tx, thread, cause !== undefined, position, MAX_THREAD_SUBSCRIPTIONS),
        (followed, position) => {
          if (followed) changed(thread, true, position)
        },
      )
      if (!isDone) throw new ProtocolError('M_FORBIDDEN', `You may follow ${MAX_THREAD_SUBSCRIPTIONS} threads.`)
      for (const listener of listeners) await listener(by)
    },

    async unsubscribe(by, roomId, rootId) {
      const { room, thread } = await find(by, roomId, rootId)
      await ledger.append(
        (tx, position) => unsubscribeFromThread(tx, thread, room.committed.pos, position),
        (_, position) => changed(thread, false, position),
      )
    },

    onSubscribed: (listener) => void listeners.push(listener),

    async list({ userNid }, { from = ledger.position(), to = 0, limit = THREAD_SUBSCRIPTIONS_PER_PAGE }) {
      const size = Math.min(limit, MAX_THREAD_SUBSCRIPTIONS_PER_PAGE)
      const rows = await threadSubscriptionsBetween(db, userNid, { after: to, upTo: from, limit: size + 1 })
      const page = rows.slice(0, size)
      const rest = rows[size]
      const changes = (isSubscribed: boolean) => {
        const byRoom: Record<RoomId, Record<EventId, JsonObject>> = {}
        for (const { room_id, root_id, is_subscribed, is_automatic, position } of page) {
          if (is_subscribed !== isSubscribed) continue
          byRoom[room_id] ??= {}
          byRoom[room_id][root_id] = { ...(isSubscribed && { automatic: is_automatic }), bump_stamp: position }
        }
        return byRoom
      }
      return { subscribed: changes(true), unsubscribed: changes(false), ...(rest && { end: String(rest.position) }) }
    },
  }
}

function isInThread({ content }: RoomEvent, rootId: EventId): boolean {
  const relation = content['m.relates_to']
  return isObject(relation) && relation.rel_type === 'm.thread' && relation.event_id === rootId
}
