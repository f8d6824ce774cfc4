import type { StateLookup } from '../../../core/auth/context.ts'
import { authorise } from '../../../core/auth/rules.ts'
import { checkAuthEvents } from '../../../core/auth/select.ts'
import { type Pdu, type Refusal, referencedId, type Verdict } from '../../../core/event/format.ts'
import type { ReadPdu } from '../../../core/event/read.ts'
import type { EventId } from '../../../core/ids.ts'
import { createEventIdOf } from '../../../core/signing/event-hash.ts'
import type { ClaimedRoom } from './claimed-room.ts'
import type { RoomEvent } from './room-event.ts'

export function authIdsOf(pdu: Pdu): EventId[] {
  return distinct(pdu.auth_events.map(referencedId))
}

export function prevIdsOf(pdu: Pdu): EventId[] {
  return distinct(pdu.prev_events.map(referencedId))
}

/** There are few ids: searching the array is quicker than building a set. */
function distinct(ids: EventId[]): EventId[] {
  return ids.filter((id, index) => ids.indexOf(id) === index)
}

/** The events that authorise an event without being cited: the create event, where the room's id implies it. */
export function impliedIds({ version, id }: ClaimedRoom): EventId[] {
  return version.createIsAuthEvent ? [] : [createEventIdOf(id)]
}

/** All events that must be known before an event can be authorised by the events it cites. */
export function judgingIds(place: ClaimedRoom, { eventId, pdu }: Pick<ReadPdu, 'eventId' | 'pdu'>): EventId[] {
  return [...authIdsOf(pdu), ...impliedIds(place).filter((id) => id !== eventId)]
}

/**
 * Authorises an event by the events it cites: checks the list of auth events itself, and then all rules against the state that they form.
 */
export function authoriseByCited(place: ClaimedRoom, pdu: Pdu, cited: ReadonlyMap<EventId, RoomEvent>): Verdict {
  const named = pdu.auth_events.map(referencedId).map((id) => cited.get(id)!)
  const list = checkAuthEvents(
    place.version,
    pdu,
    named.map((event) => ({ pdu: event.pdu, isRejected: event.standing === 'rejected' })),
  )
  if (!list.allowed) return list
  const implied = impliedIds(place).flatMap((id) => cited.get(id) ?? [])
  return authorise(place.version, pdu, lookupIn([...named, ...implied]))
}

function lookupIn(events: readonly RoomEvent[]): StateLookup {
  return (type, stateKey) => events.find(({ pdu }) => pdu.type === type && pdu.state_key === stateKey)?.authPdu
}

/** Why the auth rules refuse an event, with the number of the clause in its room's version. */
export function reasonOf({ reason, rule }: Refusal): string {
  return rule === undefined ? reason : `${reason} (rule ${rule})`
}

/** Begins the reason of an event that only the room's current state excludes, so that a later one may admit it. */
export const BY_CURRENT_STATE = 'by the current state: '
