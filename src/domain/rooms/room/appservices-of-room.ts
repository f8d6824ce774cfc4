import type { RoomAlias, UserId } from '../../../core/ids.ts'
import type { JsonObject } from '../../../core/json.ts'
import type { Requester } from '../../accounts/requester.ts'
import type { Appservice } from '../../appservices/appservice.ts'
import type { MembershipChange, Room } from './room.ts'
import type { RoomEvent } from './room-event.ts'

/** A user has read a room. */
export interface ReadReceipt {
  readonly roomNid: number
  readonly userId: UserId
  /** What the receipt is about besides the room and the user: its type and thread. */
  readonly name: string
  /** Whether all members may see it; otherwise only its user may. */
  readonly isPublic: boolean
  /** The event as sync shows it. */
  readonly event: JsonObject
}

/** What rooms ask application services, and what they report to them. */
export interface RoomAppservices {
  /** Checks whether this caller may create or delete an alias. @throws ProtocolError `M_EXCLUSIVE` */
  requireAlias(by: Requester, alias: RoomAlias): void
  /** Whether a user is in a service's namespaces, or is the service's own user. */
  isUserOf(service: Appservice, userId: UserId): boolean
  /**
   * Asks the service that manages an alias to create its room. Returns whether the room exists now. @throws ProtocolError 408
   * `M_CONNECTION_TIMEOUT`
   */
  findAlias(alias: RoomAlias): Promise<boolean>
  /** A room got an alias, or lost one. */
  aliasesChanged(roomNid: number): void
  /** Called for every committed event, in order. */
  committed(room: Room, events: readonly RoomEvent[], members: readonly MembershipChange[]): void
  /** The set of users who are typing in a room has changed. */
  typing(roomNid: number, event: () => JsonObject): void
  /** A user has read something. */
  read(receipt: () => ReadReceipt): void
  /** Events up to a stream position were committed without a call to `committed`. */
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
