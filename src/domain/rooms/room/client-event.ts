import type { Membership } from '../../../core/event/content.ts'
import { type MemberTexts, memberTexts } from '../../../core/event/member-texts.ts'
import { STICKY, stickyMsOf } from '../../../core/event/sticky.ts'
import type { EventId, RoomId } from '../../../core/ids.ts'
import type { JsonObject } from '../../../core/json.ts'
import { type JsonBytes, wholeText } from '../../../core/json-bytes.ts'
import { writeJson } from '../../../core/large-integers.ts'
import type { EventCache } from './event-cache.ts'
import { nameOf, type Rendered, type RoomEvent } from './room-event.ts'

export interface Reading {
  /** Milliseconds; `age` is counted up to this time. */
  readonly now: number
  /** The reader's token: only the client that sent an event learns its transaction id. */
  readonly tokenNid: number | undefined
  readonly earlierTokens?: readonly number[] | undefined
  /** The reader: only the sender of a delayed event learns its id. */
  readonly userNid?: number | undefined
  /** Written into the event. Sync leaves it out, because it files events under their room. */
  readonly roomId?: RoomId | undefined
  /** The reader's membership at an event, where it is known. */
  readonly membershipAt?: MembershipAt | undefined
  /** Until when a sticky event is sticky, in milliseconds. */
  readonly stickyUntil?: ((event: RoomEvent) => number | undefined) | undefined
  /** What is bundled with events: `m.relations`. */
  readonly relations?: Bundles | undefined
  /** For a text that is written once for many readers: gives what stands in the place of what differs between them, or with time. */
  readonly leaveOpen?: ((gap: Gap) => string) | undefined
}

/** What is bundled with an event (client-server API, "Aggregations of child events"), its events loaded with their references. */
export interface Bundle {
  readonly edit?: RoomEvent
  readonly thread?: BundledThread
  /** The first events that refer to it. */
  readonly references: readonly EventId[]
}

export interface BundledThread {
  readonly latest: RoomEvent
  /** What is bundled with that. */
  readonly bundle: Bundle | undefined
  readonly replies: number
  /** Whether the reader has a part in it. */
  readonly participated: boolean
}

/** By the number of the event. */
export type Bundles = ReadonlyMap<number, Bundle>

/** An open place in a text for many readers: for an age, for what only the sender is told, or for whether the reader has a part in a thread. */
export type Gap =
  | { readonly kind: 'age'; readonly ts: number }
  | { readonly kind: 'own'; readonly mark: Mark; readonly txnId: string }
  | { readonly kind: 'thread'; readonly rootNid: number }

/** The membership of a user in a room at an event. It includes what the event itself changes. */
export type MembershipAt = (event: RoomEvent) => Membership

/** For a user who was in the room all the time. It is one function, so that callers can recognise it. */
export const alwaysJoined: MembershipAt = () => 'join'

/** Loads what the rendering of these events refers to: the state that they replaced and the redactions applied to them. */
export function loadReferences(cache: EventCache, events: readonly RoomEvent[]): Promise<void> | undefined {
  return events.every((event) => isRendered(cache, event)) ? undefined : renderAnew(cache, events)
}

async function renderAnew(cache: EventCache, events: readonly RoomEvent[]): Promise<void> {
  const stale = events.filter((event) => !isRendered(cache, event))
  const nids: number[] = []
  for (const event of stale) {
    if (event.replacesNid !== undefined) nids.push(event.replacesNid)
    if (event.redactedBy !== undefined) nids.push(event.redactedBy)
  }
  const loaded = nids.length === 0 ? NOTHING : await cache.load(nids)
  for (const event of stale) {
    event.rendered = render(event, loaded)
    cache.grown(event)
  }
}

/** Whether an event is rendered, and no event that it repeats was redacted since. */
export function isRendered(cache: EventCache, { rendered }: RoomEvent): boolean {
  return (
    rendered?.repeated.every(({ nid, redactedBy }) => {
      const now = cache.get(nid)
      return now !== undefined && now.redactedBy === redactedBy
    }) ?? false
  )
}

/** What decides whether an event is written for some client as for nobody else. */
export type Mark = Pick<RoomEvent, 'txnToken' | 'senderNid'>

/** What decides that of a reader. */
export type ReaderMarks = Pick<Reading, 'tokenNid' | 'earlierTokens' | 'userNid'>

/** Whether this client sent an event: with this login of its device, or with an earlier one. */
function isOwn({ txnToken }: Mark, by: ReaderMarks): boolean {
  if (txnToken === undefined) return false
  return txnToken === by.tokenNid || by.earlierTokens?.includes(txnToken) === true
}

/**
 * The number under which the delayed events of a user have their transaction ids: no login and no application service has it. The
 * transaction id is the `delay_id`, so that an event is sent once, even if the server dies in between.
 */
export const delayedScope = (userNid: number): number => -(2 ** 51 + userNid)

/** Whether it is an event that this user has had sent later. */
function wasDelayedBy({ txnToken, senderNid }: Mark, userNid: number | undefined): boolean {
  return userNid === senderNid && txnToken === delayedScope(senderNid)
}

/** Whether an event is written for this client as for nobody else. */
export function isMarkedFor(event: Mark, by: ReaderMarks): boolean {
  return isOwn(event, by) || wasDelayedBy(event, by.userNid)
}

/** Writes an event in the client format (client-server API, "Room event format"). */
export function writeClientEvent(out: JsonBytes, event: RoomEvent, reading: Reading): void {
  const rendered = event.rendered ?? render(event, NOTHING)
  out.text(rendered.head).text(`${ageAt(event, reading)}${afterAge(event, rendered, reading)}`)
}

/** The same as text, to be put together with others. @param bundle instead of what the reading bundles with it */
export function clientEventText(event: RoomEvent, reading: Reading, bundle?: Bundle): string {
  const rendered = event.rendered ?? render(event, NOTHING)
  return `${rendered.head}${ageAt(event, reading)}${afterAge(event, rendered, reading, bundle)}`
}

/** An event in the client format, cut at the one place that changes as time passes. */
export interface ClientEventParts {
  readonly head: string
  readonly age: string
  readonly rest: string
}

export function clientEventParts(event: RoomEvent, reading: Reading): ClientEventParts {
  const rendered = event.rendered ?? render(event, NOTHING)
  return { head: rendered.head, age: `${ageAt(event, reading)}`, rest: afterAge(event, rendered, reading) }
}

function ageAt({ ts }: RoomEvent, { now, leaveOpen }: Reading): number | string {
  return leaveOpen ? leaveOpen({ kind: 'age', ts }) : Math.max(0, now - ts)
}

function afterAge(
  event: RoomEvent,
  { unsigned, tail, isSticky }: Rendered,
  reading: Reading,
  bundle = reading.relations?.get(event.nid),
): string {
  const membership = reading.membershipAt?.(event)
  // This is the case for nearly every event that a sync writes.
  const isMarked = event.txnId !== undefined && (reading.leaveOpen !== undefined || isMarkedFor(event, reading))
  const stickyMs = isSticky ? (reading.stickyUntil?.(event) ?? 0) - reading.now : 0
  const isPlain =
    unsigned === '' && tail === '' && !isMarked && reading.roomId === undefined && stickyMs <= 0 && bundle === undefined
  if (isPlain && membership === 'join') return ',"membership":"join"}}'
  let rest = unsigned
  if (membership !== undefined) rest += `,"membership":"${membership}"`
  if (bundle !== undefined) rest += `,"m.relations":${bundleText(bundle, event, reading)}`
  if (stickyMs > 0) rest += `,"msc4354_sticky_duration_ttl_ms":${stickyMs}`
  if (isMarked) rest += markedText(event, event.txnId!, reading)
  rest += `}${tail}`
  if (reading.roomId !== undefined) rest += `,"room_id":${JSON.stringify(reading.roomId)}`
  return `${rest}}`
}

function markedText(event: Mark, txnId: string, reading: Reading): string {
  const { txnToken, senderNid } = event
  return reading.leaveOpen?.({ kind: 'own', mark: { txnToken, senderNid }, txnId }) ?? ownText(event, txnId, reading)
}

/** The members of `unsigned` that an event has only for the client that sent it, or for the user who had it sent. */
export function ownText(event: Mark, txnId: string, by: ReaderMarks): string {
  const txn = isOwn(event, by) ? `,"transaction_id":${JSON.stringify(txnId)}` : ''
  return wasDelayedBy(event, by.userNid) ? `${txn},"delay_id":"${txnId}","org.matrix.msc4140.delay_id":"${txnId}"` : txn
}

/** @param root the event with which it is bundled */
function bundleText({ edit, thread, references }: Bundle, root: RoomEvent, reading: Reading): string {
  const { now, tokenNid, earlierTokens, userNid, roomId, leaveOpen } = reading
  const within: Reading = { now, tokenNid, earlierTokens, userNid, roomId, leaveOpen }
  const parts: string[] = []
  if (edit) parts.push(`"m.replace":${clientEventText(edit, within)}`)
  if (thread) {
    const latest = clientEventText(thread.latest, within, thread.bundle)
    const participated = leaveOpen?.({ kind: 'thread', rootNid: root.nid }) ?? thread.participated
    const counts = `"count":${thread.replies},"current_user_participated":${participated}`
    parts.push(`"m.thread":{"latest_event":${latest},${counts}}`)
  }
  if (references.length > 0) {
    const chunk = references.map((event_id) => ({ event_id }))
    parts.push(`"m.reference":${JSON.stringify({ chunk })}`)
  }
  return `{${parts.join(',')}}`
}

const NOTHING: ReadonlyMap<number, RoomEvent> = new Map()

function render(event: RoomEvent, loaded: ReadonlyMap<number, RoomEvent>): Rendered {
  const replaced = event.replacesNid === undefined ? undefined : loaded.get(event.replacesNid)
  const redaction = event.redactedBy === undefined ? undefined : loaded.get(event.redactedBy)
  const texts = event.type === 'm.room.redaction' ? undefined : memberTexts(event.json)
  const isPlain = texts?.isPlain === true
  const head = wholeText(isPlain ? headOf(event, texts) : headOfParsed(event))
  const isSticky = !isPlain && stickyMsOf(event.pdu) !== undefined
  if (replaced === undefined && redaction === undefined)
    return { head, unsigned: '', isSticky, tail: '', repeated: NONE }
  const previous = replaced && writeJson(replaced.pdu.content)
  const unsigned = [
    replaced ? `,"prev_content":${previous},"replaces_state":${JSON.stringify(replaced.id)}` : '',
    replaced ? `,"prev_sender":${JSON.stringify(replaced.sender)}` : '',
    redaction ? `,"redacted_by":${JSON.stringify(redaction.id)}` : '',
    redaction ? `,"redacted_because":${writeJson(redactionNotice(redaction))}` : '',
  ].join('')
  const tail = previous === undefined ? '' : wholeText(`,"prev_content":${previous}`)
  return { head, unsigned, isSticky, tail, repeated: [replaced, redaction].flatMap(repetitionOf) }
}

/** The text of a usual event up to its age. */
export function headOf(
  event: Pick<RoomEvent, 'id' | 'type'>,
  { content, originServerTs, sender, stateKey }: MemberTexts,
): string {
  const state = stateKey === undefined ? '' : `,"state_key":${stateKey}`
  const head = `{"content":${content},"event_id":${JSON.stringify(nameOf(event))},"origin_server_ts":${originServerTs},"sender":${sender}${state},"type":${JSON.stringify(event.type)},"unsigned":{"age":`
  return head
}

function headOfParsed(event: RoomEvent): string {
  const { pdu } = event
  const redacts = pdu.redacts ?? (event.type === 'm.room.redaction' ? pdu.content.redacts : undefined)
  const content = redacts === undefined ? pdu.content : { ...pdu.content, redacts }
  return [
    `{"content":${writeJson(content)},"event_id":${JSON.stringify(nameOf(event))}`,
    stickyMsOf(pdu) === undefined ? '' : `,"${STICKY}":${writeJson(pdu[STICKY])}`,
    `,"origin_server_ts":${pdu.origin_server_ts}`,
    `,"sender":${JSON.stringify(pdu.sender)}`,
    pdu.state_key === undefined ? '' : `,"state_key":${JSON.stringify(pdu.state_key)}`,
    redacts === undefined ? '' : `,"redacts":${writeJson(redacts)}`,
    `,"type":${JSON.stringify(event.type)},"unsigned":{"age":`,
  ].join('')
}

const NONE: readonly [] = []

/** Holds no reference to the event itself, which would then stay in memory longer than the cache wants. */
function repetitionOf(other: RoomEvent | undefined): Rendered['repeated'] {
  return other ? [{ nid: other.nid, redactedBy: other.redactedBy }] : NONE
}

function redactionNotice(redaction: RoomEvent): JsonObject {
  const { pdu } = redaction
  const redacts = pdu.redacts ?? pdu.content.redacts
  return {
    content: pdu.content,
    event_id: redaction.id,
    origin_server_ts: redaction.ts,
    sender: pdu.sender,
    type: redaction.type,
    unsigned: {},
    ...(redacts === undefined ? {} : { redacts }),
  }
}

/** The four keys of a state event that stripped state shows to a user outside the room. */
export function strippedState(event: RoomEvent): JsonObject {
  const { content, sender, state_key, type } = event.pdu
  return { content, sender, state_key: state_key ?? '', type }
}
