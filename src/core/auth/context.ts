import { type Membership, membershipOf } from '../event/content.ts'
import type { Pdu } from '../event/format.ts'
import type { EventId } from '../ids.ts'
import type { RoomVersion } from '../room-version.ts'
import { eventIdOf } from '../signing/event-hash.ts'
import type { PowerLevels } from './power-levels.ts'

/** The room's state before the event. */
export type StateLookup = (type: string, stateKey: string) => Pdu | undefined

/** What the rules look at. */
export interface AuthContext {
  readonly version: RoomVersion
  readonly event: Pdu
  readonly state: StateLookup
  readonly create: Pdu
  readonly levels: PowerLevels
}

const createEventIds = new WeakMap<Pdu, EventId>()

/** The id of a create event, which room version 12 compares with every event's room: computed once as long as the event is held. */
export function idOfCreate(version: RoomVersion, create: Pdu): EventId {
  const known = createEventIds.get(create)
  if (known !== undefined) return known
  const id = eventIdOf(version, create)
  createEventIds.set(create, id)
  return id
}

export function membershipIn(context: AuthContext, userId: string): Membership {
  return membershipOf(context.state('m.room.member', userId))
}
