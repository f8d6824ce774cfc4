import { type Membership, membershipOf } from '../event/content.ts'
import type { Pdu } from '../event/format.ts'
import type { EventId } from '../ids.ts'
import type { RoomVersion } from '../room-version.ts'
import { eventIdOf } from '../signing/event-hash.ts'
import type { PowerLevels } from './power-levels.ts'

/** The room's state before the event. */
export type StateLookup = (type: string, stateKey: string) => Pdu | undefined

/** The input of the authorisation rules. */
export interface AuthContext {
  readonly version: RoomVersion
  readonly event: Pdu
  readonly state: StateLookup
  readonly create: Pdu
  readonly levels: PowerLevels
}

const createEventIds = new WeakMap<Pdu, EventId>()

/** The id of a create event. Room version 12 compares it with every event's room id, so it is cached as long as the event is in memory. */
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
