import type { EventId, RoomAlias, RoomId, ServerName, UserId } from '../../../core/ids.ts'
import type { JsonObject, JsonOffence } from '../../../core/json.ts'
import type { Requester } from '../../accounts/requester.ts'
import type { ClientTransaction } from '../write/transactions.ts'

/** Content from a request body, with anything in it that canonical JSON forbids. */
export interface SentContent {
  readonly content: JsonObject
  readonly offence: JsonOffence | undefined
  /** When it happened, in milliseconds; by default now. */
  readonly ts?: number
  /** How long it is sticky, in milliseconds (MSC4354); message events only. */
  readonly stickyMs?: number
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
  /** Servers that may be in the room, if this one is not. */
  readonly via?: readonly ServerName[]
  /** Other members of the member event, which have no meaning to this server. */
  readonly others?: JsonObject
}

/** An identity server's statement that an invited address belongs to a user (client-server API, "Third-party Signed"). */
export interface SignedForInvite {
  readonly sender: UserId
  readonly mxid: UserId
  readonly token: string
  readonly signatures: JsonObject
}

/** What local users do in rooms. Each call resolves when it is durable, and throws a ProtocolError when it is not allowed. */
export interface Rooms {
  create(
    by: Requester,
    request: RoomRequest,
    offence: JsonOffence | undefined,
  ): Promise<{ roomId: RoomId; alias: RoomAlias | undefined }>
  /** First accepts the invitation of one of the user's addresses that `third_party_signed` proves. */
  join(by: Requester, roomId: RoomId, details: JoinDetails): Promise<void>
  /** Asks the members of a room to be let in. @param details `via`: servers that may be in the room, if this one is not */
  knock(by: Requester, roomId: RoomId, details: Pick<JoinDetails, 'reason' | 'via'>): Promise<void>
  leave(by: Requester, roomId: RoomId, details: { reason?: string }): Promise<void>
  invite(by: Requester, roomId: RoomId, target: UserId, details: { reason?: string }): Promise<void>
  kick(by: Requester, roomId: RoomId, target: UserId, details: { reason?: string }): Promise<void>
  ban(by: Requester, roomId: RoomId, target: UserId, details: { reason?: string }): Promise<void>
  unban(by: Requester, roomId: RoomId, target: UserId, details: { reason?: string }): Promise<void>
  /** Removes the room from the user's lists. `M_UNKNOWN` while they are still in it. */
  forget(by: Requester, roomId: RoomId): Promise<void>
  /** @throws ProtocolError `M_FORBIDDEN` when the two share no room */
  mustShareRoom(by: Requester, other: UserId): Promise<void>
  /** @param transaction makes it happen once; without it each call is a new event */
  send(
    by: Requester,
    roomId: RoomId,
    type: string,
    sent: SentContent,
    transaction: ClientTransaction | undefined,
  ): Promise<EventId>
  /** @param transaction makes it happen once */
  setState(
    by: Requester,
    roomId: RoomId,
    type: string,
    stateKey: string,
    sent: SentContent,
    transaction?: ClientTransaction,
  ): Promise<EventId>
  redact(
    by: Requester,
    roomId: RoomId,
    target: EventId,
    sent: SentContent,
    transaction: ClientTransaction | undefined,
  ): Promise<EventId>
}
