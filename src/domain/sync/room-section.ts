import { canonicalAliasOf, roomNameOf } from '../../core/event/content.ts'
import type { RelatedBy } from '../../core/filter.ts'
import type { UserId } from '../../core/ids.ts'
import type { JsonObject } from '../../core/json.ts'
import { JsonBytes } from '../../core/json-bytes.ts'
import { writeJson } from '../../core/large-integers.ts'
import { diffState, forEachState, type StateMap } from '../../core/state/trie.ts'
import { getHeroes } from '../../store/rooms/rooms.ts'
import { MAX_ANSWER_PART_BYTES } from '../limits.ts'
import { clientEventText, loadReferences, type Reading } from '../rooms/room/client-event.ts'
import type { LoadedPart } from '../rooms/room/event-loader.ts'
import { encodePosition } from '../rooms/room/position-token.ts'
import type { Room } from '../rooms/room/room.ts'
import type { RoomEvent } from '../rooms/room/room-event.ts'
import { wantedData, writeAccountData } from './account-data-section.ts'
import type { Look, RoomNews } from './look.ts'
import { projectEvent } from './project-event.ts'
import { type RoomUnread, totalOf } from './unread-mark.ts'

/** How many users name a room without a name. */
const HEROES = 5

/** Longer texts of events are not put together. */
const MAX_JOINED_TEXT = 16 * 1024

/** What is known of the reader and of other events, for the events of a timeline. */
export type EventExtras = Pick<Reading, 'membershipAt' | 'relations'>

/** Writes events in the format that the filter asks for. References of `events` must be loaded. */
export function writeEventList(
  out: JsonBytes,
  look: Look,
  events: readonly RoomEvent[],
  more: EventExtras = {},
): JsonBytes {
  writeEvents(out.text('['), look, events, more)
  return out.text(']')
}

/** For whom, and as of when, events are written. */
export function readingOf({ by, sources, timeMs }: Look, { membershipAt, relations }: EventExtras = {}): Reading {
  const { sticky } = sources
  const stickyUntil = sticky.isEmpty ? undefined : ({ roomNid, nid }: RoomEvent) => sticky.until(roomNid, nid)
  const { tokenNid, earlierTokens, userNid } = by
  return { now: timeMs, tokenNid, earlierTokens, userNid, stickyUntil, membershipAt, relations }
}

function writeEvents(out: JsonBytes, look: Look, events: readonly RoomEvent[], more: EventExtras = {}): void {
  const { filter } = look.request
  const plain = filter.eventFields === undefined && filter.eventFormat === 'client'
  const reading = readingOf(look, more)
  // Many texts are put together and copied at once, which takes less than to copy each.
  let text = ''
  events.forEach((event, index) => {
    if (index > 0) text += ','
    if (plain) text += clientEventText(event, reading)
    else text += writeJson(projectEvent(event, look, reading))
    if (text.length < MAX_JOINED_TEXT) return
    out.text(text)
    text = ''
  })
  out.text(text)
}

/** What follows the events of a timeline. */
export const afterEvents = (limited: boolean, before: number): string =>
  `,"limited":${limited},"prev_batch":${JSON.stringify(encodePosition(before))}}`

/** What decides which state goes with a slice of the timeline. */
export interface StateWish {
  /** The state to send. */
  readonly target: StateMap
  /** The state that the client already knows, if any. */
  readonly known: StateMap | undefined
  /** Whether to send all of it nevertheless. */
  readonly isFull: boolean
  /** Gives who sent the events of the timeline. Only members that are loaded lazily depend on it. */
  readonly senders: () => readonly string[]
  /** The users after whom a room without a name is named. */
  readonly heroes: readonly string[]
}

/** The numbers of the state events to send: what changed, and with lazy loading only the members that the client needs. */
export function stateToSend(look: Look, room: Room, wish: StateWish): number[] {
  const { target, known, isFull } = wish
  const { state: filter } = look.request.filter.room
  if (!filter.roomMatches(room.id)) return []
  const nids = new Set<number>()
  // Changed members are always sent, because the client may know their old member event.
  if (known) diffState(known, target, (_keyId, _before, nid) => nids.add(nid))
  const isLazy = filter.lazyLoadMembers
  const isSent = (keyId: number) => !isLazy || room.keys.nameOf(keyId).type !== 'm.room.member'
  if (isFull) forEachState(target, (keyId, nid) => void (isSent(keyId) && nids.add(nid)))
  if (isLazy) for (const nid of lazyMembers(look, room, wish, wish.senders())) nids.add(nid)
  nids.delete(0)
  return [...nids]
}

/** Who sent events, each once. Numbers are compared, because a sender's id is in the text of an event only. */
export function sendersOf({ localMembers }: Room, events: readonly RoomEvent[]): UserId[] {
  const senders = new Map<number, UserId>()
  for (const event of events) {
    const { senderNid } = event
    if (!senders.has(senderNid)) senders.set(senderNid, localMembers.get(senderNid)?.userId ?? event.sender)
  }
  return [...senders.values()]
}

/** The members that the client needs for this timeline and for the room's name, without those that it was already sent. */
export function lazyMembers(
  look: Look,
  room: Room,
  { target, isFull, heroes }: Pick<StateWish, 'target' | 'isFull' | 'heroes'>,
  senders: readonly string[],
): number[] {
  const { by, sources, request, now } = look
  // A client that starts over gets all again.
  const since = isFull ? undefined : look.since?.events
  const sent = sources.lazyMembers.of(by.tokenNid, room.nid, since)
  const needed = new Map<string, number>()
  for (const userId of [...senders, ...heroes, ...(isFull ? [by.userId] : [])]) {
    const nid = room.stateNid(target, 'm.room.member', userId)
    const isRedundant = sent.nidOf(userId) === nid && !request.filter.room.state.includeRedundantMembers
    if (nid !== 0 && !isRedundant) needed.set(userId, nid)
  }
  sources.lazyMembers.record(by.tokenNid, room.nid, since, needed, now.events)
  return [...needed.values()]
}

/** State events of a room, as far as they are loaded. */
export interface RoomState {
  readonly room: Room
  readonly events: readonly RoomEvent[]
  /** The rest of a state that is too large to hold. It is loaded, and filtered, while it is sent. */
  readonly left: readonly number[]
}

/** Loads state events, drops those that the filter does not want, and loads what writing the others needs. */
export function loadState(look: Look, room: Room, nids: readonly number[]): RoomState | Promise<RoomState> {
  if (nids.length === 0) return { room, events: [], left: [] }
  const loading = look.sources.events.loadWithin(nids, MAX_ANSWER_PART_BYTES)
  return loading instanceof Promise ? loading.then((part) => stateOf(look, room, part)) : stateOf(look, room, loading)
}

function stateOf(look: Look, room: Room, { found, left }: LoadedPart): RoomState | Promise<RoomState> {
  const wanted = wantedOf(look, room, found)
  return wanted instanceof Promise
    ? wanted.then((events) => ({ room, events: inOrder(events), left }))
    : { room, events: inOrder(wanted), left }
}

const inOrder = (events: readonly RoomEvent[]): readonly RoomEvent[] =>
  events.length < 2 ? events : events.toSorted((before, after) => before.nid - after.nid)

function wantedOf(
  look: Look,
  room: Room,
  found: readonly RoomEvent[],
): readonly RoomEvent[] | Promise<readonly RoomEvent[]> {
  const { state: filter } = look.request.filter.room
  const matching = filter.matchesAll
    ? found
    : found.filter((event) => filter.eventMatches({ type: event.type, sender: event.sender, content: event.content }))
  const { relatedBy } = filter
  if (relatedBy) return relatedOf(look, room, matching, relatedBy)
  const loading = loadReferences(look.sources.events, matching)
  return loading ? loading.then(() => matching) : matching
}

async function relatedOf(
  look: Look,
  room: Room,
  matching: readonly RoomEvent[],
  relatedBy: RelatedBy,
): Promise<readonly RoomEvent[]> {
  const wanted = await look.sources.keepRelated(look.by, room, matching, relatedBy)
  await loadReferences(look.sources.events, wanted)
  return wanted
}

/** The key under which a room's state is sent. */
export const stateName = ({ request }: Look): string => request.stateAfter ?? 'state'

/** Writes the list of a room's state events. @param others what comes before them in the list, as JSON */
export function writeState(
  out: JsonBytes,
  look: Look,
  { room, events, left }: RoomState,
  others: readonly string[] = [],
): JsonBytes {
  out.text(`[${others.join()}${others.length > 0 && events.length > 0 ? ',' : ''}`)
  writeEvents(out, look, events)
  if (left.length === 0) return out.text(']')
  return out.later(() => stateLeft(look, room, left, events.length + others.length === 0)).text(']')
}

async function* stateLeft(
  look: Look,
  room: Room,
  nids: readonly number[],
  isFirst: boolean,
): AsyncGenerator<JsonBytes> {
  let isNone = isFirst
  for (let wanted = nids; wanted.length > 0; ) {
    const { found, left } = await look.sources.events.loadLarge(wanted, MAX_ANSWER_PART_BYTES)
    wanted = left
    const events = await wantedOf(look, room, found)
    if (events.length === 0) continue
    const part = new JsonBytes().text(isNone ? '' : ',')
    writeEvents(part, look, events)
    isNone = false
    yield part
  }
}

export function eventList(events: readonly JsonObject[]): string {
  return `{"events":${writeJson(events)}}`
}

/** With threads counted apart, if the client wants that; otherwise together. */
export function unreadText({ request }: Look, unread: RoomUnread): string {
  const { unreadThreadNotifications, unstableThreadNotifications } = request.filter.room.timeline
  const isApart = unreadThreadNotifications || unstableThreadNotifications
  const main = isApart ? unread.main : totalOf(unread)
  const { notification_count, highlight_count } = main
  let text = `,"unread_notifications":{"notification_count":${notification_count},"highlight_count":${highlight_count}}`
  if (isApart && unread.threads.size > 0) {
    const threads = JSON.stringify(Object.fromEntries(unread.threads))
    if (unreadThreadNotifications) text += `,"unread_thread_notifications":${threads}`
    if (unstableThreadNotifications) text += `,"org.matrix.msc3773.unread_thread_notifications":${threads}`
  }
  return text
}

/** What sums a room up, and ends its section. */
export const sumsText = (look: Look, summary: Summary | undefined, unread: RoomUnread): string =>
  `${summary ? `,"summary":${summaryText(summary)}` : ''}${unreadText(look, unread)}}`

/** Numbers alone, for most rooms. */
export function summaryText(summary: Summary): string {
  if (summary['m.heroes']) return JSON.stringify(summary)
  const { 'm.joined_member_count': joined, 'm.invited_member_count': invited } = summary
  return `{"m.joined_member_count":${joined},"m.invited_member_count":${invited}}`
}

/** State that the summary counts, or that decides whether it names heroes. */
const SUMMED = new Set(['m.room.member', 'm.room.name', 'm.room.canonical_alias'])
export const isSummed = ({ type }: RoomEvent): boolean => SUMMED.has(type)

/** `summary` of a joined room. */
export interface Summary {
  readonly 'm.heroes'?: readonly UserId[]
  readonly 'm.joined_member_count': number
  readonly 'm.invited_member_count': number
}

/** @param isNamed whether it is known that the room has a name */
export function summaryOf(look: Look, room: Room, isNamed = false): Summary | Promise<Summary> {
  if (isNamed) return countsOf(room)
  const nameNid = room.stateNid(room.committed.state, 'm.room.name', '')
  const name = nameNid === 0 ? undefined : room.fact(nameNid)
  return roomNameOf(name) === undefined ? summaryWithHeroes(look, room) : countsOf(room)
}

export const countsOf = ({ counts }: Room) => ({
  'm.joined_member_count': counts.join,
  'm.invited_member_count': counts.invite,
})

/** The heroes name a room that has no name of its own. */
async function summaryWithHeroes(look: Look, room: Room): Promise<Summary> {
  const counts = countsOf(room)
  const [name, alias] = await Promise.all([
    room.stateEvent('m.room.name', ''),
    room.stateEvent('m.room.canonical_alias', ''),
  ])
  if ((roomNameOf(name) ?? canonicalAliasOf(alias)) !== undefined) return counts
  return { 'm.heroes': await getHeroes(look.sources.db, room.nid, look.by.userNid, HEROES), ...counts }
}

const NOTHING = new JsonBytes()

/** What comes with a room besides its events; empty when there is nothing. */
export function besideEvents(look: Look, room: Room, news: RoomNews): JsonBytes {
  const typing = look.sources.typing(room.nid)
  if (typing === undefined && news.receipts === undefined && news.accountData.length === 0) return NOTHING
  const out = new JsonBytes()
  const { ephemeral, accountData } = look.request.filter.room
  const data = accountData.roomMatches(room.id) ? wantedData(news.accountData, accountData) : []
  writeAccountData(out, look, data, accountData)
  const passing: JsonObject[] = []
  if (news.receipts) passing.push({ type: 'm.receipt', content: news.receipts })
  if (typing && typing.position > (look.since?.ephemeral ?? 0) && (look.since || typing.userIds.length > 0)) {
    const shown = look.ignored ? typing.userIds.filter((userId) => !look.ignored?.has(userId)) : typing.userIds
    passing.push({ type: 'm.typing', content: { user_ids: [...shown] } })
  }
  const wanted = ephemeral.roomMatches(room.id)
    ? passing.filter((event) =>
        ephemeral.eventMatches({ type: event.type as string, content: event.content as JsonObject }),
      )
    : []
  if (wanted.length > 0) out.text(`,"ephemeral":${eventList(wanted)}`)
  return out
}
