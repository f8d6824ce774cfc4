import type { ReadPdu } from '../../../core/event/read.ts'
import type { EventId, ServerName } from '../../../core/ids.ts'
import { compareIntegers } from '../../../core/large-integers.ts'
import type { Database } from '../../../store/db/db.ts'
import { MAX_CLAIMED_STATES, MAX_FETCHED_WITH_HISTORY } from '../../limits.ts'
import type { FederationQueries } from '../receive/federation-queries.ts'
import type { Outliers } from '../receive/outliers.ts'
import { unknownOf } from '../receive/remote-state.ts'
import { authIdsOf, impliedIds, prevIdsOf } from '../room/event-references.ts'
import type { Room } from '../room/room.ts'
import type { RoomEvent } from '../room/room-event.ts'
import { topological } from '../room/topological.ts'

/** Events that are missing right before an event in the timeline, and their place there. */
export interface Gap {
  /** The event that refers to them. */
  readonly holder: RoomEvent
  readonly missing: readonly EventId[]
  /** The lowest timeline position above the gap that is taken. */
  readonly from: number
  /** The highest one below it. */
  readonly below: number
}

/** A piece of history from another server, with everything needed to authorise and place it. None of it is stored yet. */
export interface Piece {
  /** Oldest first. */
  readonly order: readonly ReadPdu[]
  /** The state before those events that build on missing ones, by event ids. Empty where it equals the state after the gap. */
  readonly claimed: ReadonlyMap<EventId, readonly EventId[]>
  /** Whether nothing in it changes the state: the state before each event is the state after the gap. */
  readonly isPlain: boolean
  /** The events that they cite, and those in their states, that this server does not have. */
  readonly around: readonly ReadPdu[]
}

/** Combines what a server gave for a gap with what else it must be asked for. Undefined when none of it belongs in the gap. */
export async function preparePiece(
  parts: { readonly db: Database; readonly outliers: Outliers; readonly queries: FederationQueries },
  room: Room,
  of: ServerName,
  gap: Gap,
  given: readonly ReadPdu[],
): Promise<Piece | undefined> {
  const { db, outliers, queries } = parts
  const known = await outliers.find(room, [...new Set(given.flatMap((read) => [read.eventId, ...prevIdsOf(read.pdu)]))])
  const order = connected(gap, given, known)
  if (order.length === 0) return undefined
  const among = new Set(order.map(({ eventId }) => eventId))
  const isPlain = isPlainLine(gap, order)
  const lacking = order.filter(({ pdu }) =>
    prevIdsOf(pdu).some((id) => !among.has(id) && known.get(id)?.hasPlace !== true),
  )
  const claimed = new Map<EventId, readonly EventId[]>()
  for (const { eventId } of isPlain ? [] : lacking.slice(0, MAX_CLAIMED_STATES)) {
    const answer = await queries.stateIds(of, room.id, eventId)
    if (answer) claimed.set(eventId, answer.state)
  }
  const cited = new Set([...order.flatMap(({ pdu }) => authIdsOf(pdu)), ...impliedIds(room)])
  const needed = [...cited, ...[...claimed.values()].flat()].filter((id) => !among.has(id))
  const unknown = await unknownOf(db, room, [...new Set(needed)])
  const around =
    unknown.length === 0 ? [] : await outliers.gather(room, of, unknown, { left: MAX_FETCHED_WITH_HISTORY })
  return { order, claimed, isPlain, around: around.filter(({ eventId }) => !among.has(eventId)) }
}

/** The events that connect the missing ones with the known ones, oldest first. A server may give anything. */
function connected(
  { missing }: Gap,
  given: readonly ReadPdu[],
  known: ReadonlyMap<EventId, RoomEvent>,
): readonly ReadPdu[] {
  const byId = new Map(given.map((read) => [read.eventId, read]))
  const found = new Map<EventId, ReadPdu>()
  const open = [...missing]
  for (let id = open.pop(); id !== undefined; id = open.pop()) {
    const read = byId.get(id)
    if (!read || found.has(id) || known.get(id)?.hasPlace) continue
    found.set(id, read)
    open.push(...prevIdsOf(read.pdu))
  }
  const byDepth = [...found.values()].sort((a, b) => compareIntegers(a.pdu.depth, b.pdu.depth))
  return topological(new Map(byDepth.map((read) => [read.eventId, read])), ({ pdu }) => prevIdsOf(pdu)).order
}

/**
 * Whether the events are one line of messages up to the event after the gap. Nothing in it changes the state, so no server need be asked
 * for it.
 */
function isPlainLine({ holder }: Gap, order: readonly ReadPdu[]): boolean {
  const after = [...order.slice(1).map(({ pdu }) => pdu), holder.pdu]
  return order.every(({ eventId, pdu }, index) => {
    const builtOn = prevIdsOf(after[index]!)
    return pdu.state_key === undefined && builtOn.length === 1 && builtOn[0] === eventId
  })
}
