import { JsonBytes } from '../../../core/json-bytes.ts'
import type { Room } from '../../rooms/room/room.ts'
import type { RoomEvent } from '../../rooms/room/room-event.ts'
import { sendersOf } from '../room-section.ts'
import { FEWEST_MEMBERS, isForReader, isOfSpan, sharedEvents, showsToAll, withNewest } from '../shared-news.ts'
import type { SharedAnswer } from '../shared-stretches.ts'
import { notifiableAt } from '../shown-timeline.ts'
import { type RoomUnread, totalOf } from '../unread-mark.ts'
import type { SlidingLook } from './look.ts'
import type { SentRoom } from './record.ts'
import type { RoomAnswer } from './room-answer.ts'
import type { WantedRoom } from './windows.ts'

/** The answer of a room, if another reader has just got the same. @param sent what the client was sent of it */
export function sharedAnswer(
  look: SlidingLook,
  wanted: WantedRoom,
  room: Room,
  sent: SentRoom | undefined,
): RoomAnswer | Promise<RoomAnswer> | undefined {
  if (!isUpToDate(look, wanted, room, sent)) return undefined
  const shared = look.own.sharedAnswers.get(room.nid)?.find((one) => isFor(one, look, wanted))
  if (shared === undefined || !showsToAll(look, room.nid) || !isForReader(shared, look, room)) return undefined
  if (wanted.wish.required.isLazy && !knowsSenders(look, room, shared)) return undefined
  const { sources, by, sliding } = look
  const { notifiable, json } = shared
  const answer = (unread: RoomUnread | undefined): RoomAnswer => ({
    nid: room.nid,
    roomId: room.id,
    json: withUnread(new JsonBytes().text(json), unread),
    sent: sent!,
    isBegun: false,
    // Nobody asks for it: it is no beginning, and nothing is sticky.
    timeline: [],
    people: [],
  })
  const counting = sliding.shape.hasUnread ? sources.unread.count(by.userNid, room.nid, notifiable) : undefined
  return counting instanceof Promise ? counting.then(answer) : answer(counting)
}

/** Whether the client has all of a room up to its position, as it wants it. */
function isUpToDate(look: SlidingLook, { wish }: WantedRoom, room: Room, sent: SentRoom | undefined): boolean {
  return (
    sent !== undefined &&
    look.from !== undefined &&
    sent.upTo === undefined &&
    sent.timelineLimit >= wish.timelineLimit &&
    sent.required.key === wish.required.key &&
    sent.isDirect === look.direct.has(room.id) &&
    look.sliding.extensions.profiles === undefined
  )
}

function isFor(shared: SharedAnswer, look: SlidingLook, { wish, lists }: WantedRoom): boolean {
  return (
    shared.shape === look.sliding.shape &&
    shared.timelineLimit === wish.timelineLimit &&
    shared.required === wish.required.key &&
    isOfSpan(shared, look) &&
    shared.lists === listsIn(look, lists)
  )
}

/** The merged form says which lists a room is in. */
const listsIn = ({ sliding: { shape } }: SlidingLook, lists: readonly string[]): string =>
  shape.hasMembership ? JSON.stringify(lists) : ''

/** Whether a connection was sent the members who sent the events. */
function knowsSenders({ own, connection, record, since }: SlidingLook, room: Room, { senders }: SharedAnswer): boolean {
  const sent = own.slidingMembers.of(connection, room.nid, [record.version, ...since!.events])
  for (const [userId, nid] of senders) if (nid !== 0 && sent.nidOf(userId) !== nid) return false
  return true
}

/** Keeps what is said of a room with new events and no other news. @param json all of it but the unread counts */
export function keepAnswer(
  look: SlidingLook,
  wanted: WantedRoom,
  room: Room,
  {
    sent,
    timeline,
    json,
  }: { readonly sent: SentRoom | undefined; readonly timeline: readonly RoomEvent[]; readonly json: string },
): void {
  if (room.localMembers.size < FEWEST_MEMBERS || !isUpToDate(look, wanted, room, sent) || !showsToAll(look, room.nid))
    return
  const shared = sharedEvents(look, timeline)
  if (shared === undefined) return
  const { required, timelineLimit } = wanted.wish
  const senders = new Map<string, number>()
  const { state } = room.committed
  for (const userId of sendersOf(room, timeline)) senders.set(userId, room.stateNid(state, 'm.room.member', userId))
  const answer: SharedAnswer = {
    ...shared,
    shape: look.sliding.shape,
    lists: listsIn(look, wanted.lists),
    timelineLimit,
    required: required.key,
    senders,
    notifiable: notifiableAt(look, room),
    json,
  }
  look.own.sharedAnswers.set(room.nid, withNewest(look.own.sharedAnswers.get(room.nid), answer))
}

/** Ends the object of a room. */
export function withUnread(out: JsonBytes, unread: RoomUnread | undefined): JsonBytes {
  if (unread) {
    const { notification_count, highlight_count } = totalOf(unread)
    out.text(`,"notification_count":${notification_count},"highlight_count":${highlight_count}`)
  }
  return out.text('}')
}
