import type { EventId, RoomAlias, RoomId, ServerName, UserId } from '../../../core/ids.ts'
import type { JsonObject, JsonOffence } from '../../../core/json.ts'
import type { Requester } from '../../accounts/requester.ts'
import type { ClientTransaction } from '../write/transactions.ts'

/** Content as it came in a body, with what canonical JSON would forbid in it. */
export interface SentContent {
  readonly content: JsonObject
  readonly offence: JsonOffence | undefined
  /** When it happened, in milliseconds; now when left out. */
  readonly ts?: number
}

/** Body of `POST createRoom`, validated for shape. */
export interface RoomRequest {
  readonly visibility?: 'public' | 'private'
  readonly preset?: 'private_chat' | 'public_chat' | 'trusted_private_chat'
  readonly room_alias_name?: string
  readonly name?: string
  readonly topic?: string
  readonly invite?: readonly string[]
  readonly room_version?: string
  readonly creation_content?: JsonObject
  readonly initial_state?: readonly {
    readonly type: string
    readonly state_key?: string
    readonly content: JsonObject
  }[]
  readonly power_level_content_override?: JsonObject
  readonly is_direct?: boolean
}

/** The body of a join. */
export interface JoinDetails {
  readonly reason?: string
  readonly third_party_signed?: SignedForInvite
  /** Servers that may be in the room, where this one is not. */
  readonly via?: readonly ServerName[]
  /** What else the member event is to say, of which this server knows nothing. */
  readonly others?: JsonObject
}

/** An identity server's word that an address which was invited is a user's (client-server API, "Third-party Signed"). */
export interface SignedForInvite {
  readonly sender: UserId
  readonly mxid: UserId
  readonly token: string
  readonly signatures: JsonObject
}

/** What local users do in rooms. Each resolves once it is durable and throws a ProtocolError when it may not be done. */
export interface Rooms {
  create(
    by: Requester,
    request: RoomRequest,
    offence: JsonOffence | undefined,
  ): Promise<{ roomId: RoomId; alias: RoomAlias | undefined }>
  /** Accepts first what `third_party_signed` proves to be the user's: an invitation of one of their addresses. */
  join(by: Requester, roomId: RoomId, details: JoinDetails): Promise<void>
  /** Asks those in a room to be let in. @param details `via`: servers that may be in the room, where this one is not */
  knock(by: Requester, roomId: RoomId, details: Pick<JoinDetails, 'reason' | 'via'>): Promise<void>
  leave(by: Requester, roomId: RoomId, details: { reason?: string }): Promise<void>
  invite(by: Requester, roomId: RoomId, target: UserId, details: { reason?: string }): Promise<void>
  kick(by: Requester, roomId: RoomId, target: UserId, details: { reason?: string }): Promise<void>
  ban(by: Requester, roomId: RoomId, target: UserId, details: { reason?: string }): Promise<void>
  unban(by: Requester, roomId: RoomId, target: UserId, details: { reason?: string }): Promise<void>
  /** Leaves the room out of the user's lists. `M_UNKNOWN` while they are still in it. */
  forget(by: Requester, roomId: RoomId): Promise<void>
  /** @throws ProtocolError `M_FORBIDDEN` when the two are in no room together */
  mustShareRoom(by: Requester, other: UserId): Promise<void>
  /** @param transaction what makes it happen once; without it each call is a new event */
  send(
    by: Requester,
    roomId: RoomId,
    type: string,
    sent: SentContent,
    transaction: ClientTransaction | undefined,
  ): Promise<EventId>
  setState(by: Requester, roomId: RoomId, type: string, stateKey: string, sent: SentContent): Promise<EventId>
  redact(
    by: Requester,
    roomId: RoomId,
    target: EventId,
    sent: SentContent,
    transaction: ClientTransaction | undefined,
  ): Promise<EventId>
}
