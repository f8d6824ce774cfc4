import type { JsonObject } from '../../../core/json.ts'
import { JsonBytes } from '../../../core/json-bytes.ts'
import { MAX_SLIDING_ROOMS } from '../../limits/sliding-sync.ts'
import { roomsWithEvents } from '../active-rooms.ts'
import { allOf } from '../all-of.ts'
import { ROOMS_AT_ONCE, warm } from '../first/warm.ts'
import { movesUnread } from '../joined-room.ts'
import type { StreamPosition } from '../token.ts'
import type { ExtensionPart, ScopedRoom } from './extensions/extension.ts'
import { extensionParts } from './extensions/extension-parts.ts'
import { joinedAnswer, nothingNewIn, type RoomHints } from './joined-answer.ts'
import { roomLook, type SlidingLook, sentUpTo } from './look.ts'
import { otherAnswer } from './other-answers.ts'
import { isSameRoom, type SentRoom, type SentUpTo, type SlidingRecord, withinWishes } from './record.ts'
import { farewells, removedRooms, type ShownRoom } from './removed-rooms.ts'
import type { RoomAnswer } from './room-answer.ts'
import { type RoomOrder, type RoomStanding, roomOrderOf, roomStandingOf } from './room-order.ts'
import { type WantedRoom, type Windows, windowsOf } from './windows.ts'

/** What a look at a connection found. */
export interface SlidingAnswer {
  readonly isEmpty: boolean
  /** Whether more is to come at the same position. */
  readonly hasMore: boolean
  /** The ledger position up to which the client hears of changed profiles; undefined for the end of the look. */
  readonly profilesUpTo: number | undefined
  /** How many rooms each list has, as JSON. */
  readonly lists: string
  /** What the client has been sent with this answer; undefined if that is what it was sent before. */
  readonly rooms: ReadonlyMap<number, SentRoom> | undefined
  /** The answer, but for its position, which comes first. */
  readonly rest: JsonBytes
}

const NO_NIDS: readonly number[] = []
const NO_FAREWELLS: readonly ShownRoom[] = []
const NO_ROOMS: Windows = { counts: new Map(), rooms: new Map() }

/** Takes what the client will have been sent of rooms, as soon as it is known, to write it down while the rest is read. */
export type KeepRooms = (rooms: SlidingRecord['rooms']) => void

/**
 * What is new for a connection between two positions (MSC4186). Synchronous where all of it is in memory.
 *
 * @param keep called with the rooms of the answer, unless they are undefined there
 */
export function slidingAnswer(look: SlidingLook, keep?: KeepRooms): SlidingAnswer | Promise<SlidingAnswer> {
  const { lists, subscriptions } = look.sliding
  if (lists.size + subscriptions.size === 0) {
    return roomStandingOf(look).then((standing) => extended(look, standing, NO_ROOMS, NOTHING, keep))
  }
  const ordering = roomOrderOf(look)
  return ordering instanceof Promise
    ? ordering.then((order) => inOrder(look, order, keep))
    : inOrder(look, ordering, keep)
}

function inOrder(look: SlidingLook, order: RoomOrder, keep?: KeepRooms): SlidingAnswer | Promise<SlidingAnswer> {
  const choosing = windowsOf(look, order)
  return choosing instanceof Promise
    ? choosing.then((windows) => within(look, order, windows, keep))
    : within(look, order, choosing, keep)
}

function within(
  look: SlidingLook,
  order: RoomOrder,
  windows: Windows,
  keep?: KeepRooms,
): SlidingAnswer | Promise<SlidingAnswer> {
  const answering = answersOf(look, order, windows)
  return answering instanceof Promise
    ? answering.then((answers) => extended(look, order, windows, answers, keep, order))
    : extended(look, order, windows, answering, keep, order)
}

/** The answer, once what the rooms have is known. @param order undefined for clients that ask for no rooms */
function extended(
  look: SlidingLook,
  { joined, departed }: RoomStanding,
  windows: Windows,
  answers: Answered,
  keep?: KeepRooms,
  order?: RoomOrder,
): SlidingAnswer | Promise<SlidingAnswer> {
  const { answered, receipts } = answers
  const removed = order ? removedRooms(look, order) : NO_NIDS
  const isRecorded = order !== undefined || look.record.rooms.size > 0
  const rooms = isRecorded ? recordAfter(look, windows, answered, removed) : undefined
  if (rooms) keep?.(rooms)
  const reading = allOf([
    extensionParts({ look, rooms: answered, joined, departed, receipts }),
    removed.length > 0 ? farewells(look, removed, answered) : NO_FAREWELLS,
  ])
  const isCut = answers.hasMore || removed.length > MAX_SLIDING_ROOMS
  const found = { windows, answered, rooms, isCut }
  if (!(reading instanceof Promise)) return made(found, reading)
  return reading.then((ready) => made(found, ready))
}

/** What the answer says of rooms. */
interface FoundRooms extends Pick<SlidingAnswer, 'rooms'>, Pick<Answered, 'answered'> {
  readonly windows: Windows
  /** Whether there is more than fits into an answer. */
  readonly isCut: boolean
}

function made(
  { windows, answered, rooms, isCut }: FoundRooms,
  [parts, gone]: readonly [readonly ExtensionPart[], readonly ShownRoom[]],
): SlidingAnswer {
  const shown: ShownRoom[] = []
  for (const { answer } of answered) if (answer.json) shown.push(answer as ShownRoom)
  if (gone.length > 0) shown.push(...gone)
  let hasMore = isCut
  let hasNews = shown.length > 0
  let profilesUpTo: number | undefined
  for (const part of parts) {
    hasMore ||= part.hasMore === true
    hasNews ||= part.hasNews
    profilesUpTo ??= part.profilesUpTo
  }
  const counts = writeCounts(windows)
  return {
    // What is left out for now comes only once the client has gone on.
    isEmpty: !hasNews && !hasMore,
    hasMore,
    profilesUpTo,
    lists: counts,
    rooms,
    rest: writeRest(counts, shown, parts),
  }
}

/** How many rooms each list has, as JSON. */
export async function listCounts(look: SlidingLook): Promise<string> {
  return look.sliding.lists.size === 0 ? '{}' : writeCounts(await windowsOf(look, await roomOrderOf(look)))
}

interface Answered {
  readonly answered: readonly ScopedRoom[]
  readonly receipts: ReadonlyMap<number, JsonObject>
  readonly hasMore: boolean
}

const NOTHING: Answered = { answered: [], receipts: new Map(), hasMore: false }

/** Looks at the rooms that are asked for. If there is more in them than fits into an answer, the rest comes with the next one. */
function answersOf(look: SlidingLook, { joined }: RoomOrder, windows: Windows): Answered | Promise<Answered> {
  const { record } = look
  const known: WantedRoom[] = []
  const begun: WantedRoom[] = []
  for (const wanted of windows.rooms.values()) (record.rooms.has(wanted.room.nid) ? known : begun).push(wanted)
  const inside: number[] = []
  for (const { room } of known) if (joined.has(room.nid)) inside.push(room.nid)
  const reading = allOf([eventfulOf(look, inside), receiptsOf(look, inside)])
  const wishes = { known, begun }
  if (reading instanceof Promise) return reading.then((news) => answersWith(look, wishes, news))
  return answersWith(look, wishes, reading)
}

interface Wishes {
  /** Rooms that the client has. */
  readonly known: readonly WantedRoom[]
  readonly begun: readonly WantedRoom[]
}

type HeardOf = readonly [withEvents: ReadonlySet<number>, receipts: ReadonlyMap<number, JsonObject>]

function answersWith(
  look: SlidingLook,
  { known, begun }: Wishes,
  [withEvents, receipts]: HeardOf,
): Answered | Promise<Answered> {
  const busy = withEvents.size > MAX_SLIDING_ROOMS ? new Set([...withEvents].slice(MAX_SLIDING_ROOMS)) : undefined
  const going = busy === undefined ? known : known.filter(({ room }) => !busy.has(room.nid))
  const rooms = [...going, ...begun.slice(0, MAX_SLIDING_ROOMS)]
  const hasMore = begun.length > MAX_SLIDING_ROOMS || busy !== undefined
  const warming = warmUp(look, rooms, withEvents)
  const answers = warming
    ? warming.then(() => answersIn(look, rooms, withEvents, receipts))
    : answersIn(look, rooms, withEvents, receipts)
  const answeredWith = (answered: readonly ScopedRoom[]): Answered => ({ answered, receipts, hasMore })
  return answers instanceof Promise ? answers.then(answeredWith) : answeredWith(answers)
}

function answersIn(
  look: SlidingLook,
  rooms: readonly WantedRoom[],
  withEvents: ReadonlySet<number>,
  receipts: ReadonlyMap<number, JsonObject>,
): readonly ScopedRoom[] | Promise<readonly ScopedRoom[]> {
  const answerOne = (wanted: WantedRoom): RoomAnswer | Promise<RoomAnswer> => {
    const { nid, isJoined } = wanted.room
    if (!isJoined) return otherAnswer(look, wanted)
    const isRead = look.sliding.shape.hasUnread && movesUnread(look, { receipts: receipts.get(nid) })
    const hints: RoomHints = { hasEvents: !look.record.rooms.has(nid) || withEvents.has(nid), movesUnread: isRead }
    return nothingNewIn(look, wanted, hints) ?? joinedAnswer(look, wanted, hints)
  }
  if (rooms.length > ROOMS_AT_ONCE) return inTurns(rooms, answerOne)
  const answers = allOf(rooms.map(answerOne))
  return answers instanceof Promise ? answers.then((ready) => scoped(rooms, ready)) : scoped(rooms, answers)
}

async function inTurns(
  rooms: readonly WantedRoom[],
  answerOne: (wanted: WantedRoom) => RoomAnswer | Promise<RoomAnswer>,
): Promise<readonly ScopedRoom[]> {
  const answered: ScopedRoom[] = []
  for (let start = 0; start < rooms.length; start += ROOMS_AT_ONCE) {
    const some = rooms.slice(start, start + ROOMS_AT_ONCE)
    answered.push(...scoped(some, await allOf(some.map(answerOne))))
  }
  return answered
}

const scoped = (rooms: readonly WantedRoom[], answers: readonly RoomAnswer[]): ScopedRoom[] =>
  rooms.map((wanted, place) => ({ wanted, answer: answers[place]! }))

/** Rooms, by how far the client was sent them. */
function bySince(look: SlidingLook, nids: readonly number[]): ReadonlyMap<StreamPosition, readonly number[]> {
  const positions = new Map<SentUpTo | undefined, StreamPosition>()
  const found = new Map<StreamPosition, number[]>()
  for (const nid of nids) {
    const sent = look.record.rooms.get(nid)
    const since = positions.get(sent?.upTo) ?? sentUpTo(look, sent)
    if (since === undefined) continue
    positions.set(sent?.upTo, since)
    const some = found.get(since)
    if (some) some.push(nid)
    else found.set(since, [nid])
  }
  return found
}

/** Those of the rooms in which something happened that the client was not sent. */
function eventfulOf(look: SlidingLook, nids: readonly number[]): ReadonlySet<number> | Promise<ReadonlySet<number>> {
  const { sources } = look
  const found = new Set<number>()
  const unknown: number[] = []
  for (const nid of nids) {
    const since = sentUpTo(look, look.record.rooms.get(nid))
    if (since === undefined) continue
    const changed = sources.roomEvents.since(nid, since.events[0] ?? 0)
    if (changed === true) found.add(nid)
    else if (changed === undefined) unknown.push(nid)
  }
  return unknown.length === 0 ? found : withUnknown(look, unknown, found)
}

async function withUnknown(
  look: SlidingLook,
  unknown: readonly number[],
  found: Set<number>,
): Promise<ReadonlySet<number>> {
  const groups = [...bySince(look, unknown)]
  const sets = await Promise.all(groups.map(([since, some]) => roomsWithEvents(look.sources, since.events, some)))
  for (const some of sets) for (const nid of some) found.add(nid)
  return found
}

const NO_RECEIPTS: ReadonlyMap<number, JsonObject> = new Map()

/** The receipts since, if anything of the answer shows them. */
function receiptsOf(
  look: SlidingLook,
  nids: readonly number[],
): ReadonlyMap<number, JsonObject> | Promise<ReadonlyMap<number, JsonObject>> {
  const { sources, sliding } = look
  if (!sliding.shape.hasUnread && !sliding.extensions.receipts) return NO_RECEIPTS
  const suspects = nids.filter((nid) => {
    const since = sentUpTo(look, look.record.rooms.get(nid))
    return since !== undefined && sources.roomLedger.since(nid, since.ledger) !== false
  })
  return suspects.length === 0 ? NO_RECEIPTS : receiptsIn(look, suspects)
}

async function receiptsIn(look: SlidingLook, nids: readonly number[]): Promise<ReadonlyMap<number, JsonObject>> {
  const { sources, by, now } = look
  const all = new Map<number, JsonObject>()
  const reading = [...bySince(look, nids)].map(async ([{ ledger }, some]) => {
    for (const [nid, content] of await sources.receipts(by, some, ledger, now.ledger)) all.set(nid, content)
  })
  await Promise.all(reading)
  return all
}

/** Loads rooms, timelines and counts for all rooms at once. */
function warmUp(
  look: SlidingLook,
  rooms: readonly WantedRoom[],
  withEvents: ReadonlySet<number>,
): undefined | Promise<void> {
  const cold = rooms.filter(({ room, wish }) => {
    if (!room.isJoined) return false
    const sent = look.record.rooms.get(room.nid)
    return sent === undefined || sent.timelineLimit < wish.timelineLimit || withEvents.has(room.nid)
  })
  if (cold.length < 2) return undefined
  const limit = Math.max(...cold.map(({ wish }) => wish.timelineLimit))
  return warm(
    roomLook(look, undefined, limit),
    cold.map(({ room }) => room.nid),
  )
}

/** Undefined if the client was sent nothing that the record must say. */
function recordAfter(
  look: SlidingLook,
  windows: Windows,
  answered: readonly ScopedRoom[],
  removed: readonly number[],
): ReadonlyMap<number, SentRoom> | undefined {
  const { record, from } = look
  if (removed.length === 0 && isAllSame(record, answered)) return undefined
  const changed = new Map<number, SentRoom | undefined>()
  const seen = new Set<number>(removed)
  for (const nid of removed) changed.set(nid, undefined)
  for (const { answer } of answered) {
    seen.add(answer.nid)
    const before = record.rooms.get(answer.nid)
    if (before === undefined || !isSameRoom(before, answer.sent)) changed.set(answer.nid, answer.sent)
  }
  const upTo = from && { events: from.stream.events, ledger: from.stream.ledger }
  for (const [nid, sent] of record.rooms) {
    if (seen.has(nid)) continue
    // From here on, the connection's position says nothing of a room that is not shown.
    if (sent.upTo === undefined && upTo) changed.set(nid, { ...sent, upTo })
  }
  if (changed.size === 0) return undefined
  const after = new Map(record.rooms)
  for (const [nid, sent] of changed) {
    if (sent) after.set(nid, sent)
    else after.delete(nid)
  }
  return withinWishes(after, (nid) => windows.rooms.has(nid))
}

/** Whether the client has all rooms of its record with this answer, and each as before. */
function isAllSame({ rooms }: SlidingRecord, answered: readonly ScopedRoom[]): boolean {
  if (rooms.size !== answered.length) return false
  for (const { answer } of answered) {
    const before = rooms.get(answer.nid)
    if (before === undefined || !isSameRoom(before, answer.sent)) return false
  }
  return true
}

function writeCounts({ counts }: Windows): string {
  let text = '{'
  for (const [key, count] of counts) text += `${text === '{' ? '' : ','}${JSON.stringify(key)}:{"count":${count}}`
  return `${text}}`
}

/** Every answer has the counts, because clients load more rooms by them. */
function writeRest(counts: string, rooms: readonly ShownRoom[], parts: readonly ExtensionPart[]): JsonBytes {
  const out = new JsonBytes().text(`,"lists":${counts},"rooms":{`)
  rooms.forEach(({ roomId, json }, index) => void out.key(roomId, index === 0).append(json))
  out.text('},"extensions":{')
  // Their names are ours: nothing in them needs an escape.
  parts.forEach(({ name, json }, index) => void out.text(`${index === 0 ? '' : ','}"${name}":`).append(json))
  return out.text('}}')
}
