import { ProtocolError } from '../../../core/errors.ts'
import type { EventId, RoomId } from '../../../core/ids.ts'
import type { JsonObject } from '../../../core/json.ts'
import { findAccountData, setAccountData } from '../../../store/accounts/account-data.ts'
import type { Database } from '../../../store/db/db.ts'
import type { Ledger } from '../../../store/db/ledger.ts'
import {
  putReceipt,
  type ReceiptKind,
  type ReceiptRow,
  receiptPositions,
  receiptsBetween,
  receiptsToBegin,
} from '../../../store/events/receipts.ts'
import { clearUnread, findThreadAt } from '../../../store/events/unread.ts'
import type { Waker } from '../../accounts/account-data.ts'
import type { Requester } from '../../accounts/requester.ts'
import type { Clock } from '../../clock.ts'
import { MAX_RECEIPTS_SEARCHED } from '../../limits/sliding-sync.ts'
import type { EventCache } from '../room/event-cache.ts'
import type { RoomAccess } from '../room/room-access.ts'
import type { RoomEvent } from '../room/room-event.ts'
import { isInThread } from '../room/threads.ts'
import type { Viewer } from '../room/viewer.ts'
import type { IgnoredUsers } from './ignored-users.ts'
import { receiptContents } from './receipt-content.ts'

export type MarkerKind = ReceiptKind | 'm.fully_read'

const MARKER_KINDS: readonly string[] = ['m.fully_read', 'm.read', 'm.read.private'] satisfies MarkerKind[]

export function isMarkerKind(kind: string): kind is MarkerKind {
  return MARKER_KINDS.includes(kind)
}

export interface Receipts {
  /**
   * Records how far a user has read: for all to see (`m.read`), for themselves (`m.read.private`), or as the fully-read marker. None ever
   * moves backwards.
   *
   * @param threadId the root of a thread, or `main`; undefined for the whole room
   * @throws ProtocolError `M_FORBIDDEN` for users who are not in the room, `M_NOT_FOUND` for an event that the user cannot see,
   * `M_INVALID_PARAM` for a thread that the event is not in
   */
  mark(by: Requester, roomId: RoomId, kind: MarkerKind, eventId: EventId, threadId?: string): Promise<void>
  /** Sets several markers of a room at once. */
  markAll(by: Requester, roomId: RoomId, marks: { readonly [Kind in MarkerKind]?: EventId }): Promise<void>
  /**
   * Records the public receipt of a user of another server. It is dropped if it names a thread that the event is not in.
   *
   * @param ts milliseconds, by that server's clock
   */
  receive(who: Viewer, event: RoomEvent, ts: number | undefined, threadId: string | undefined): Promise<void>
  /** The content of `m.receipt` for each room with receipts between two ledger positions that the user may see. */
  between(
    viewer: Viewer,
    roomNids: readonly number[],
    after: number,
    upTo: number,
  ): Promise<ReadonlyMap<number, JsonObject>>
  /** The same for rooms that are new to a reader: their own receipts, and those of others at some events. */
  first(
    viewer: Viewer,
    roomNids: readonly number[],
    eventNids: readonly number[],
    upTo: number,
  ): Promise<ReadonlyMap<number, JsonObject>>
}

export interface ReceiptParts {
  readonly db: Database
  readonly ledger: Ledger
  readonly clock: Clock
  readonly access: RoomAccess
  readonly events: EventCache
  readonly ignoredUsers: Pick<IgnoredUsers, 'of'>
  /** Wakes users after something that only they see was written. */
  readonly waker: Waker
  /** Called for every receipt that was written, before its position is published. */
  written(receipt: WrittenReceipt): void
}

export interface WrittenReceipt {
  readonly by: Viewer
  readonly event: RoomEvent
  /** Whether all members may see it; otherwise only its user may. */
  readonly isPublic: boolean
  /**
   * Whether the user's receipt of the whole room is at the same event. That one says more, and readers keep only one of the two, so they
   * are not told of this one (MSC4102).
   */
  readonly isShadowed: boolean
  /** '' for a receipt of the whole room. */
  readonly threadId: string
  readonly ts: number
  /** Its position in the ledger. */
  readonly position: number
}

export function createReceipts(parts: ReceiptParts): Receipts {
  const { db, ledger, clock, access, events } = parts

  async function checkThread(event: RoomEvent, threadId: string): Promise<void> {
    if (await isInThread(events, event, threadId)) return
    // What was redacted says no more which thread it was in.
    if ((await findThreadAt(db, event.roomNid, event.pos)) === threadId) return
    throw new ProtocolError('M_INVALID_PARAM', 'The event is not in the thread that `thread_id` names.')
  }

  async function receipt(
    by: Viewer,
    event: RoomEvent,
    kind: ReceiptKind,
    threadId: string,
    ts = clock.now(),
  ): Promise<void> {
    const of = { roomNid: event.roomNid, userNid: by.userNid, kind, threadId }
    const known = await receiptPositions(db, of)
    if ((known.get(threadId) ?? Number.NEGATIVE_INFINITY) >= event.pos) return
    const isPublic = kind === 'm.read'
    const isShadowed = threadId !== '' && known.get('') === event.pos
    await ledger.append(
      (tx, position) =>
        Promise.all([
          putReceipt(tx, { ...of, eventNid: event.nid, eventPos: event.pos, ts, position }),
          clearUnread(tx, { ...of, upTo: event.pos }),
        ]),
      (_, position) => parts.written({ by, event, isPublic, isShadowed, threadId, ts, position }),
    )
  }

  async function contentsFor(viewer: Viewer, rows: readonly ReceiptRow[]): Promise<ReadonlyMap<number, JsonObject>> {
    const ignored = await parts.ignoredUsers.of(viewer.userNid)
    return receiptContents(ignored ? rows.filter(({ user_id }) => !ignored.has(user_id)) : rows)
  }

  async function fullyRead(by: Requester, roomId: RoomId, event: RoomEvent): Promise<void> {
    const current = await findAccountData(db, by.userNid, roomId, 'm.fully_read')
    const known = typeof current?.event_id === 'string' ? await events.getById(current.event_id) : undefined
    if (known?.roomNid === event.roomNid && known.pos >= event.pos) return
    const content = JSON.stringify({ event_id: event.id })
    const marker = { userNid: by.userNid, roomId, type: 'm.fully_read', content }
    await ledger.append(
      (tx, position) => setAccountData(tx, { ...marker, position }),
      (_, position) => parts.waker.wakeUsers([by.userNid], position),
    )
  }

  const mark: Receipts['mark'] = async (by, roomId, kind, eventId, threadId) => {
    await access.mustBeInRoom(by, roomId)
    const { event } = await access.mustSee(by, roomId, eventId)
    if (kind === 'm.fully_read') {
      if (threadId !== undefined) {
        throw new ProtocolError('M_INVALID_PARAM', '`m.fully_read` is for whole rooms: it takes no `thread_id`.')
      }
      return fullyRead(by, roomId, event)
    }
    if (threadId !== undefined) await checkThread(event, threadId)
    return receipt(by, event, kind, threadId ?? '')
  }

  return {
    mark,

    async receive(who, event, ts, threadId = '') {
      if (threadId === '' || (await isInThread(events, event, threadId)))
        await receipt(who, event, 'm.read', threadId, ts)
    },

    async markAll(by, roomId, marks) {
      await access.mustBeInRoom(by, roomId)
      for (const kind of MARKER_KINDS as MarkerKind[]) {
        const eventId = marks[kind]
        if (eventId !== undefined) await mark(by, roomId, kind, eventId)
      }
    },

    async between(viewer, roomNids, after, upTo) {
      return contentsFor(viewer, await receiptsBetween(db, roomNids, viewer.userNid, after, upTo))
    },

    async first(viewer, roomNids, eventNids, upTo) {
      const at = { eventNids, upTo, searched: MAX_RECEIPTS_SEARCHED }
      return contentsFor(viewer, await receiptsToBegin(db, roomNids, viewer.userNid, at))
    },
  }
}
