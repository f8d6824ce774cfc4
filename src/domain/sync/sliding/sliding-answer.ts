import type { JsonObject } from '../../../core/json.ts'
import { JsonBytes } from '../../../core/json-bytes.ts'
import { allOf } from '../../all-of.ts'
import { MAX_SLIDING_ROOMS } from '../../limits/sliding-sync.ts'
import { roomsWithEvents } from '../active-rooms.ts'
import { ROOMS_AT_ONCE, warm } from '../answer.ts'
import { movesUnread } from '../joined-room.ts'
import type { StreamPosition } from '../token.ts'
import type { ExtensionPart, ScopedRoom } from './extensions/extension.ts'
import { extensionParts } from './extensions/extension-parts.ts'
import { joinedAnswer, nothingNewIn, type RoomHints } from './joined-answer.ts'
import { roomLook, type SlidingLook, sentUpTo } from './look.ts'
import { otherAnswer } from './other-answers.ts'
import { isSameRoom, type SentRoom, type SentUpTo, withinWishes } from './record.ts'
import type { RoomAnswer } from './room-answer.ts'
import { type RoomOrder, roomOrderOf, roomStandingOf } from './room-order.ts'
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

const NO_ROOMS: Windows = { counts: new Map(), rooms: new Map() }

/** What is new for a connection between two positions (MSC4186). */
export async function slidingAnswer(look: SlidingLook): Promise<SlidingAnswer> {
  const { lists, subscriptions } = look.sliding
  const asksForRooms = lists.size + subscriptions.size > 0
  const order = asksForRooms ? await roomOrderOf(look) : undefined
  const { joined, departed } = order ?? (await roomStandingOf(look))
  const windows = order ? await windowsOf(look, order) : NO_ROOMS
  const { answered, receipts, hasMore: hasMoreRooms } = order ? await answersOf(look, order, windows) : NOTHING
  const extending = extensionParts({ look, rooms: answered, joined, departed, receipts })
  const parts = extending instanceof Promise ? await extending : extending
  const hasMore = hasMoreRooms || parts.some((part) => part.hasMore)
  const shown = answered.flatMap(({ answer }) => (answer.json ? [answer] : []))
  const counts = writeCounts(windows)
  return {
    // What is left out for now comes only once the client has gone on.
    isEmpty: shown.length === 0 && !hasMore && !parts.some(({ hasNews }) => hasNews),
    hasMore,
    profilesUpTo: parts.find((part) => part.profilesUpTo !== undefined)?.profilesUpTo,
    lists: counts,
    rooms: asksForRooms || look.record.rooms.size > 0 ? recordAfter(look, windows, answered) : undefined,
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
async function answersOf(look: SlidingLook, { joined }: RoomOrder, windows: Windows): Promise<Answered> {
  const { record } = look
  const known: WantedRoom[] = []
  const begun: WantedRoom[] = []
  for (const wanted of windows.rooms.values()) (record.rooms.has(wanted.room.nid) ? known : begun).push(wanted)
  const inside = known.filter(({ room }) => joined.has(room.nid)).map(({ room }) => room.nid)
  const reading = allOf([eventfulOf(look, inside), receiptsOf(look, inside)])
  const [withEvents, receipts] = reading instanceof Promise ? await reading : reading
  const busy = new Set([...withEvents].slice(MAX_SLIDING_ROOMS))
  const going = busy.size === 0 ? known : known.filter(({ room }) => !busy.has(room.nid))
  const rooms = [...going, ...begun.slice(0, MAX_SLIDING_ROOMS)]
  const warming = warmUp(look, rooms, withEvents)
  if (warming) await warming
  const answerOne = (wanted: WantedRoom): RoomAnswer | Promise<RoomAnswer> => {
    const { nid, isJoined } = wanted.room
    if (!isJoined) return otherAnswer(look, wanted)
    const isRead = look.sliding.shape.hasUnread && movesUnread(look, { receipts: receipts.get(nid) })
    const hints: RoomHints = { hasEvents: !record.rooms.has(nid) || withEvents.has(nid), movesUnread: isRead }
    return nothingNewIn(look, wanted, hints) ?? joinedAnswer(look, wanted, hints)
  }
  const answered: ScopedRoom[] = []
  for (let start = 0; start < rooms.length; start += ROOMS_AT_ONCE) {
    const some = rooms.slice(start, start + ROOMS_AT_ONCE)
    const answers = some.map(answerOne)
    const isWaiting = answers.some((answer) => answer instanceof Promise)
    const ready = isWaiting ? await Promise.all(answers) : (answers as RoomAnswer[])
    for (const [place, answer] of ready.entries()) answered.push({ wanted: some[place]!, answer })
  }
  return { answered, receipts, hasMore: begun.length > MAX_SLIDING_ROOMS || busy.size > 0 }
}

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
): ReadonlyMap<number, SentRoom> | undefined {
  const { record, from } = look
  const changed = new Map<number, SentRoom | undefined>()
  const seen = new Set<number>()
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
  for (const [nid, sent] of changed) if (sent) after.set(nid, sent)
  return withinWishes(after, (nid) => windows.rooms.has(nid))
}

function writeCounts({ counts }: Windows): string {
  const lists = [...counts].map(([key, count]) => `${JSON.stringify(key)}:{"count":${count}}`)
  return `{${lists.join()}}`
}

/** Every answer has the counts, because clients load more rooms by them. */
function writeRest(counts: string, rooms: readonly RoomAnswer[], parts: readonly ExtensionPart[]): JsonBytes {
  const out = new JsonBytes().text(`,"lists":${counts},"rooms":{`)
  rooms.forEach(({ roomId, json }, index) => void out.key(roomId, index === 0).append(json!))
  out.text('},"extensions":{')
  parts.forEach(({ name, json }, index) => void out.key(name, index === 0).append(json))
  return out.text('}}')
}
