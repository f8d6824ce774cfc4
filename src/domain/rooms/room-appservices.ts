import type { RoomAlias } from '../../core/ids.ts'
import type { JsonObject } from '../../core/json.ts'
import type { Requester } from '../accounts/requester.ts'
import type { MembershipChange, Room } from './room.ts'
import type { RoomEvent } from './room-event.ts'

/** What rooms ask and tell of application services. */
export interface RoomAppservices {
  /** Whether this caller may make, or delete, an alias. @throws ProtocolError `M_EXCLUSIVE` */
  requireAlias(by: Requester, alias: RoomAlias): void
  /** Has a service make the room of an alias that it keeps; whether there is one now. @throws ProtocolError 408 `M_CONNECTION_TIMEOUT` */
  findAlias(alias: RoomAlias): Promise<boolean>
  /** A room got an alias, or lost one. */
  aliasesChanged(roomNid: number): void
  /** Told of every event that was committed, in order. */
  committed(room: Room, events: readonly RoomEvent[], members: readonly MembershipChange[]): void
  /** Something passes in a room that is no event of it: who types, who has read. */
  passes(roomNid: number, event: () => JsonObject): void
  /** Events up to a position turned out to be committed of which nobody was told. */
  missed(position: number): void
}

export const NO_APPSERVICES: RoomAppservices = {
  requireAlias: () => {},
  findAlias: async () => false,
  aliasesChanged: () => {},
  committed: () => {},
  passes: () => {},
  missed: () => {},
}
