import { isMarkedFor, type Mark } from '../rooms/room/client-event.ts'
import type { Room } from '../rooms/room/room.ts'
import type { RoomEvent } from '../rooms/room/room-event.ts'
import { type Look, type RoomNews, type Section, typesAnew, wasResyncedWithin } from './look.ts'
import { sendersOf, unreadText } from './room-section.ts'
import { SHARED_FOR_MS, type SharedEvents, type SharedNews } from './shared-stretches.ts'
import { notifiableAt } from './shown-timeline.ts'
import { isNewer, isSamePlace } from './token.ts'
import type { RoomUnread } from './unread-mark.ts'

/** Clients of a few kinds, each with a filter of its own, read a room at the same time. */
const MOST_OF_A_ROOM = 4

function isFor(shared: SharedNews, look: Look): boolean {
  const { request } = look
  return shared.filter.deref() === request.filter && shared.stateAfter === request.stateAfter && isOfSpan(shared, look)
}

/** Whether it was written a moment ago for somebody who goes the same way. */
export function isOfSpan({ since, upTo, madeAt }: SharedEvents, look: Look): boolean {
  const isRecent = look.timeMs - madeAt < SHARED_FOR_MS
  return isRecent && isSamePlace(since, look.since!.events) && isSamePlace(upTo, look.now.events)
}

/** Whether the reader sees all of the events, and none of them as nobody else. */
export function isForReader({ beginsAt, marks }: SharedEvents, { by, since }: Look, room: Room): boolean {
  const member = room.localMembers.get(by.userNid)
  if (member === undefined || isNewer(member.since, since!.events) || member.since > beginsAt) return false
  return !marks.some((mark) => isMarkedFor(mark, by))
}

/** Whether a look shows of a room nothing but events, as far as that does not depend on these. */
function isPlain(look: Look, { roomNid, receipts, accountData }: RoomNews): boolean {
  const { request } = look
  if (request.fullState || receipts !== undefined || accountData.length > 0 || typesAnew(look, roomNid)) return false
  return showsToAll(look, roomNid)
}

/** Whether a look shows events of a room as it shows them to everybody there, as far as that does not depend on these. */
export function showsToAll(look: Look, roomNid: number): boolean {
  const { sources, since, now, by, request, ignored } = look
  if (since === undefined || request.lostAfter !== undefined || ignored !== undefined) return false
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
  if (!isForReader(shared!, look, room) || !knowsSenders(look, roomNid, shared!.senders)) return undefined
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
    if (nid !== 0 && (state.includeRedundantMembers || sent.nidOf(userId) !== nid)) return false
  }
  return true
}

export function sectionOf(look: Look, roomId: string, json: string | Buffer, unread: RoomUnread): Section {
  return {
    roomId,
    write(out) {
      const end = `${unreadText(look, unread)}}`
      if (typeof json === 'string') out.text(json + end)
      else out.bytes(json).text(end)
    },
  }
}

/** Two people alone: one of them sends, and what they get is marked as their own. */
export const FEWEST_MEMBERS = 3

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
  const { sources, request } = look
  const { filter, stateAfter } = request
  const shared = sharedEvents(look, events)
  if (shared === undefined) return
  const senders = new Map<string, number>()
  if (filter.room.state.lazyLoadMembers)
    for (const userId of sendersOf(room, events)) senders.set(userId, memberNid(userId))
  const notifiable = notifiableAt(look, room)
  const section: SharedNews = { ...shared, filter: new WeakRef(filter), stateAfter, senders, notifiable, json }
  sources.sharedNews.set(room.nid, withNewest(sources.sharedNews.get(room.nid), section))
}

/** What others must know of these events to read the same; undefined where somebody sees something else in one of them. */
export function sharedEvents(look: Look, events: readonly RoomEvent[]): SharedEvents | undefined {
  const { since, now, timeMs } = look
  if (events.length === 0 || since === undefined || events.some((event) => event.isCopy || isMarkedFor(event, look.by)))
    return undefined
  let beginsAt = Number.POSITIVE_INFINITY
  const marks: Mark[] = []
  for (const { streamPos, txnToken, senderNid } of events) {
    beginsAt = Math.min(beginsAt, streamPos)
    if (txnToken !== undefined) marks.push({ txnToken, senderNid })
  }
  return { since: since.events, upTo: now.events, madeAt: timeMs, beginsAt, marks }
}

/** What is kept of a room now: the newest, and others up to the same place. */
export function withNewest<Kept extends SharedEvents>(
  before: readonly Kept[] | undefined,
  newest: Kept,
): readonly Kept[] {
  const others = (before ?? []).filter((one) => isSamePlace(one.upTo, newest.upTo))
  return [newest, ...others].slice(0, MOST_OF_A_ROOM)
}
