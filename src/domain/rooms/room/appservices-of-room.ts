import type { RoomAlias, UserId } from '../../../core/ids.ts'
import type { JsonObject } from '../../../core/json.ts'
import type { Requester } from '../../accounts/requester.ts'
import type { Appservice } from '../../appservices/appservice.ts'
import type { MembershipChange, Room } from './room.ts'
import type { RoomEvent } from './room-event.ts'

/** Somebody has read a room. */
export interface ReadReceipt {
  readonly roomNid: number
  readonly userId: UserId
  /** What it is about beside the room and the user: its kind and thread. */
  readonly name: string
  /** All members may see it, not only its user. */
  readonly isPublic: boolean
  /** As sync shows it. */
  readonly event: JsonObject
}

/** What rooms ask and tell of application services. */
export interface RoomAppservices {
  /** Whether this caller may make, or delete, an alias. @throws ProtocolError `M_EXCLUSIVE` */
  requireAlias(by: Requester, alias: RoomAlias): void
  /** Whether a user lies in a service's namespaces, or is its own. */
  isUserOf(service: Appservice, userId: UserId): boolean
  /** Has a service make the room of an alias that it keeps; whether there is one now. @throws ProtocolError 408 `M_CONNECTION_TIMEOUT` */
  findAlias(alias: RoomAlias): Promise<boolean>
  /** A room got an alias, or lost one. */
  aliasesChanged(roomNid: number): void
  /** Told of every event that was committed, in order. */
  committed(room: Room, events: readonly RoomEvent[], members: readonly MembershipChange[]): void
  /** Who types in a room has changed. */
  typing(roomNid: number, event: () => JsonObject): void
  /** Somebody has read. */
  read(receipt: () => ReadReceipt): void
  /** Events up to a position turned out to be committed of which nobody was told. */
  missed(position: number): void
}

export const NO_APPSERVICES: RoomAppservices = {
  requireAlias: () => {},
  isUserOf: () => false,
  findAlias: async () => false,
  aliasesChanged: () => {},
  committed: () => {},
  typing: () => {},
  read: () => {},
  missed: () => {},
}
