import type { Membership } from '../../../core/event/content.ts'
import type { RoomId } from '../../../core/ids.ts'
import type { JsonObject } from '../../../core/json.ts'
import { type JsonBytes, keptBytes } from '../../../core/json-bytes.ts'
import { writeJson } from '../../../core/large-integers.ts'
import type { EventCache } from './event-cache.ts'
import { nameOf, type Rendered, type RoomEvent } from './room-event.ts'

export interface Reading {
  /** Milliseconds; what `age` is counted from. */
  readonly now: number
  /** The reader's token: only the client that sent an event learns its transaction id. */
  readonly tokenNid: number | undefined
  readonly earlierTokens?: readonly number[] | undefined
  /** Written into the event, except by sync, which files events under their room. */
  readonly roomId?: RoomId
  /** The reader's membership at an event; told where it is known. */
  readonly membershipAt?: MembershipAt | undefined
}

/** Somebody's membership of a room at an event of it, with what the event itself changes. */
export type MembershipAt = (event: RoomEvent) => Membership

/** Of somebody who was in the room all the time. One function, so that it can be recognised. */
export const alwaysJoined: MembershipAt = () => 'join'

/** Brings to hand what rendering these events refers to: the state they took the place of, the redactions applied to them. */
export function loadReferences(cache: EventCache, events: readonly RoomEvent[]): Promise<void> | undefined {
  return events.every((event) => isCurrent(cache, event)) ? undefined : renderAnew(cache, events)
}

async function renderAnew(cache: EventCache, events: readonly RoomEvent[]): Promise<void> {
  const stale = events.filter((event) => !isCurrent(cache, event))
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

/** Whether an event is rendered, and what it repeats of others was not redacted since. */
function isCurrent(cache: EventCache, { rendered }: RoomEvent): boolean {
  return (
    rendered?.repeated.every(({ nid, redactedBy }) => {
      const now = cache.get(nid)
      return now !== undefined && now.redactedBy === redactedBy
    }) ?? false
  )
}

/** Whether a client sent an event itself: by this login of its device, or an earlier one. */
export function isOwn({ txnToken }: RoomEvent, by: Pick<Reading, 'tokenNid' | 'earlierTokens'>): boolean {
  if (txnToken === undefined) return false
  return txnToken === by.tokenNid || by.earlierTokens?.includes(txnToken) === true
}

/** Writes an event in the client format (client-server API, "Room event format"). */
export function writeClientEvent(out: JsonBytes, event: RoomEvent, reading: Reading): void {
  const { head, unsigned, tail } = event.rendered ?? render(event, NOTHING)
  out.bytes(head)
  const age = Math.max(0, reading.now - event.ts)
  const membership = reading.membershipAt?.(event)
  // Nearly every event that a sync writes.
  const hasTxn = event.txnId !== undefined && isOwn(event, reading)
  const isPlain = unsigned === '' && tail === '' && !hasTxn && reading.roomId === undefined
  if (isPlain && membership === 'join') return void out.text(`${age},"membership":"join"}}`)
  let rest = `${age}${unsigned}`
  if (membership !== undefined) rest += `,"membership":"${membership}"`
  if (hasTxn) rest += `,"transaction_id":${JSON.stringify(event.txnId)}`
  rest += `}${tail}`
  if (reading.roomId !== undefined) rest += `,"room_id":${JSON.stringify(reading.roomId)}`
  out.text(`${rest}}`)
}

const NOTHING: ReadonlyMap<number, RoomEvent> = new Map()

function render(event: RoomEvent, loaded: ReadonlyMap<number, RoomEvent>): Rendered {
  const { pdu } = event
  const redacts = pdu.redacts ?? (event.type === 'm.room.redaction' ? pdu.content.redacts : undefined)
  const content = redacts === undefined ? pdu.content : { ...pdu.content, redacts }
  const replaced = event.replacesNid === undefined ? undefined : loaded.get(event.replacesNid)
  const redaction = event.redactedBy === undefined ? undefined : loaded.get(event.redactedBy)
  const previous = replaced && writeJson(replaced.pdu.content)
  const head = [
    `{"content":${writeJson(content)},"event_id":${JSON.stringify(nameOf(event))},"origin_server_ts":${pdu.origin_server_ts}`,
    `,"sender":${JSON.stringify(pdu.sender)}`,
    pdu.state_key === undefined ? '' : `,"state_key":${JSON.stringify(pdu.state_key)}`,
    redacts === undefined ? '' : `,"redacts":${writeJson(redacts)}`,
    `,"type":${JSON.stringify(event.type)},"unsigned":{"age":`,
  ].join('')
  const unsigned = [
    replaced ? `,"prev_content":${previous},"replaces_state":${JSON.stringify(replaced.id)}` : '',
    replaced ? `,"prev_sender":${JSON.stringify(replaced.sender)}` : '',
    redaction ? `,"redacted_by":${JSON.stringify(redaction.id)}` : '',
    redaction ? `,"redacted_because":${writeJson(redactionNotice(redaction))}` : '',
  ].join('')
  return {
    head: keptBytes(head),
    unsigned,
    tail: previous === undefined ? '' : `,"prev_content":${previous}`,
    repeated: replaced || redaction ? [replaced, redaction].flatMap(repetitionOf) : NONE,
  }
}

const NONE: readonly [] = []

/** Not the event itself, which would be kept in memory for longer than the cache wants. */
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

/** The four keys by which a room introduces itself to somebody who is not in it. */
export function strippedState(event: RoomEvent): JsonObject {
  const { content, sender, state_key, type } = event.pdu
  return { content, sender, state_key: state_key ?? '', type }
}
