import type { Membership } from '../../../core/event/content.ts'
import { type MemberTexts, memberTexts } from '../../../core/event/member-texts.ts'
import { STICKY, stickyMsOf } from '../../../core/event/sticky.ts'
import type { RoomId } from '../../../core/ids.ts'
import type { JsonObject } from '../../../core/json.ts'
import type { JsonBytes } from '../../../core/json-bytes.ts'
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
  readonly roomId?: RoomId
  /** The reader's membership at an event, where it is known. */
  readonly membershipAt?: MembershipAt | undefined
  /** Until when a sticky event is sticky, in milliseconds. */
  readonly stickyUntil?: ((event: RoomEvent) => number | undefined) | undefined
  /** What is bundled with events: `m.relations`, as JSON, by the event's number. */
  readonly relations?: ReadonlyMap<number, string> | undefined
}

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

/** Whether this client sent an event: with this login of its device, or with an earlier one. */
function isOwn({ txnToken }: Mark, by: Pick<Reading, 'tokenNid' | 'earlierTokens'>): boolean {
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
export function isMarkedFor(event: Mark, by: Pick<Reading, 'tokenNid' | 'earlierTokens' | 'userNid'>): boolean {
  return isOwn(event, by) || wasDelayedBy(event, by.userNid)
}

/** Writes an event in the client format (client-server API, "Room event format"). */
export function writeClientEvent(out: JsonBytes, event: RoomEvent, reading: Reading): void {
  const rendered = event.rendered ?? render(event, NOTHING)
  out.text(rendered.head).text(`${ageAt(event, reading)}${afterAge(event, rendered, reading)}`)
}

/** An event in the client format, to be written into another one. */
export function clientEventText(event: RoomEvent, reading: Reading): string {
  const { head, age, rest } = clientEventParts(event, reading)
  return `${head}${age}${rest}`
}

/** The same, cut at the one place that changes as time passes. */
export function clientEventParts(
  event: RoomEvent,
  reading: Reading,
): { readonly head: string; readonly age: string; readonly rest: string } {
  const rendered = event.rendered ?? render(event, NOTHING)
  return { head: rendered.head, age: `${ageAt(event, reading)}`, rest: afterAge(event, rendered, reading) }
}

const ageAt = ({ ts }: RoomEvent, { now }: Reading): number => Math.max(0, now - ts)

function afterAge(event: RoomEvent, { unsigned, tail, isSticky }: Rendered, reading: Reading): string {
  const membership = reading.membershipAt?.(event)
  // This is the case for nearly every event that a sync writes.
  const hasTxn = event.txnId !== undefined && isOwn(event, reading)
  const delayId = event.txnId !== undefined && wasDelayedBy(event, reading.userNid) ? event.txnId : undefined
  const relations = reading.relations?.get(event.nid)
  const stickyMs = isSticky ? (reading.stickyUntil?.(event) ?? 0) - reading.now : 0
  const isPlain =
    unsigned === '' &&
    tail === '' &&
    !hasTxn &&
    delayId === undefined &&
    reading.roomId === undefined &&
    stickyMs <= 0 &&
    relations === undefined
  if (isPlain && membership === 'join') return ',"membership":"join"}}'
  let rest = unsigned
  if (membership !== undefined) rest += `,"membership":"${membership}"`
  if (relations !== undefined) rest += `,"m.relations":${relations}`
  if (stickyMs > 0) rest += `,"msc4354_sticky_duration_ttl_ms":${stickyMs}`
  if (hasTxn) rest += `,"transaction_id":${JSON.stringify(event.txnId)}`
  if (delayId !== undefined) rest += `,"delay_id":"${delayId}","org.matrix.msc4140.delay_id":"${delayId}"`
  rest += `}${tail}`
  if (reading.roomId !== undefined) rest += `,"room_id":${JSON.stringify(reading.roomId)}`
  return `${rest}}`
}

const NOTHING: ReadonlyMap<number, RoomEvent> = new Map()

function render(event: RoomEvent, loaded: ReadonlyMap<number, RoomEvent>): Rendered {
  const replaced = event.replacesNid === undefined ? undefined : loaded.get(event.replacesNid)
  const redaction = event.redactedBy === undefined ? undefined : loaded.get(event.redactedBy)
  const texts = event.type === 'm.room.redaction' ? undefined : memberTexts(event.json)
  const isPlain = texts?.isPlain === true
  const previous = replaced && writeJson(replaced.pdu.content)
  const unsigned = [
    replaced ? `,"prev_content":${previous},"replaces_state":${JSON.stringify(replaced.id)}` : '',
    replaced ? `,"prev_sender":${JSON.stringify(replaced.sender)}` : '',
    redaction ? `,"redacted_by":${JSON.stringify(redaction.id)}` : '',
    redaction ? `,"redacted_because":${writeJson(redactionNotice(redaction))}` : '',
  ].join('')
  return {
    head: isPlain ? headOf(event, texts) : headOfParsed(event),
    unsigned,
    isSticky: !isPlain && stickyMsOf(event.pdu) !== undefined,
    tail: previous === undefined ? '' : `,"prev_content":${previous}`,
    repeated: replaced || redaction ? [replaced, redaction].flatMap(repetitionOf) : NONE,
  }
}

function headOf(event: RoomEvent, { content, originServerTs, sender, stateKey }: MemberTexts): string {
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
