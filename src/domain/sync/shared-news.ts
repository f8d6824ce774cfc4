import { isMarkedFor, type Mark } from '../rooms/room/client-event.ts'
import type { Room } from '../rooms/room/room.ts'
import type { RoomEvent } from '../rooms/room/room-event.ts'
import { type Look, type RoomNews, type Section, typesAnew, wasResyncedWithin } from './look.ts'
import { sendersOf, writeUnread } from './room-section.ts'
import { SHARED_FOR_MS, type SharedNews } from './shared-stretches.ts'
import { notifiableAt } from './shown-timeline.ts'
import { isNewer, isSamePlace } from './token.ts'
import type { RoomUnread } from './unread-mark.ts'

/** Clients of a few kinds, each with a filter of its own, read a room at the same time. */
const MOST_OF_A_ROOM = 4

function isFor(shared: SharedNews, { since, now, request, timeMs }: Look): boolean {
  return (
    shared.filter.deref() === request.filter &&
    shared.stateAfter === request.stateAfter &&
    timeMs - shared.madeAt < SHARED_FOR_MS &&
    isSamePlace(shared.since, since!.events) &&
    isSamePlace(shared.upTo, now.events)
  )
}

/** Whether a look shows of a room nothing but events, as far as that does not depend on these. */
function isPlain(look: Look, { roomNid, receipts, accountData }: RoomNews): boolean {
  const { sources, since, now, by, request, ignored } = look
  if (since === undefined || request.fullState || request.lostAfter !== undefined || ignored !== undefined) return false
  if (receipts !== undefined || accountData.length > 0 || typesAnew(look, roomNid)) return false
  if (!sources.sticky.isEmpty || sources.lifetimes !== undefined || wasResyncedWithin(look, roomNid)) return false
  return sources.shadowBans.ghosts(by.userNid, roomNid, since.ledger, now.ledger).length === 0
}

/** The section of a room, if another reader has just got the same; undefined if not. */
export function sharedNews(look: Look, news: RoomNews): Section | Promise<Section> | undefined {
  const { sources, since, by } = look
  const { roomNid } = news
  if (since === undefined) return undefined
  const shared = sources.sharedNews.get(roomNid)?.find((one) => isFor(one, look))
  const room = shared && sources.registry.peekAlive(roomNid)
  if (room === undefined || !isPlain(look, news)) return undefined
  const member = room.localMembers.get(by.userNid)
  if (member === undefined || isNewer(member.since, since.events) || member.since > shared!.beginsAt) return undefined
  if (shared!.marks.some((mark) => isMarkedFor(mark, by)) || !knowsSenders(look, roomNid, shared!.senders))
    return undefined
  const counting = sources.unread.count(by.userNid, roomNid, shared!.notifiable)
  return counting instanceof Promise
    ? counting.then((unread) => sectionOf(look, room.id, shared!.json, unread))
    : sectionOf(look, room.id, shared!.json, counting)
}

/** Whether a client needs no member event with these senders' events. */
function knowsSenders(look: Look, roomNid: number, senders: ReadonlyMap<string, number>): boolean {
  const { state } = look.request.filter.room
  if (!state.lazyLoadMembers) return true
  const sent = look.sources.lazyMembers.of(look.by.tokenNid, roomNid, look.since?.events)
  for (const [userId, nid] of senders) {
    if (nid !== 0 && (state.includeRedundantMembers || sent.get(userId)?.nid !== nid)) return false
  }
  return true
}

export function sectionOf(look: Look, roomId: string, json: string | Buffer, unread: RoomUnread): Section {
  return {
    roomId,
    write(out) {
      writeUnread(typeof json === 'string' ? out.text(json) : out.bytes(json), look, unread)
    },
  }
}

/** Two people alone: one of them sends, and what they get is marked as their own. */
const FEWEST_MEMBERS = 3

/** Whether others may get the same of a room as this look, and what they get is worth keeping. */
export function mayShareNews(look: Look, room: Room, news: RoomNews): boolean {
  return room.localMembers.size >= FEWEST_MEMBERS && isPlain(look, news)
}

/** What a section was made of. */
export interface WrittenNews {
  readonly events: readonly RoomEvent[]
  /** The number of a sender's member event. */
  memberNid(userId: string): number
  /** All of it but the unread counts. */
  readonly json: string
}

/** Keeps a section that has nothing but events, for others who read the same. `mayShareNews` says whether there may be any. */
export function keepNews(look: Look, room: Room, { events, memberNid, json }: WrittenNews): void {
  const { sources, since, now, request, timeMs } = look
  const { filter, stateAfter } = request
  if (events.length === 0 || since === undefined || events.some((event) => event.isCopy || isMarkedFor(event, look.by)))
    return
  let beginsAt = Number.POSITIVE_INFINITY
  const marks: Mark[] = []
  for (const { streamPos, txnToken, senderNid } of events) {
    beginsAt = Math.min(beginsAt, streamPos)
    if (txnToken !== undefined) marks.push({ txnToken, senderNid })
  }
  const senders = new Map<string, number>()
  if (filter.room.state.lazyLoadMembers)
    for (const userId of sendersOf(room, events)) senders.set(userId, memberNid(userId))
  const notifiable = notifiableAt(look, room)
  const place = { since: since.events, upTo: now.events, filter: new WeakRef(filter), stateAfter, madeAt: timeMs }
  const section: SharedNews = { ...place, beginsAt, marks, senders, notifiable, json }
  const others = (sources.sharedNews.get(room.nid) ?? []).filter((one) => isSamePlace(one.upTo, now.events))
  sources.sharedNews.set(room.nid, [section, ...others].slice(0, MOST_OF_A_ROOM))
}
