import type { RoomAlias, RoomId, UserId } from '../../core/ids.ts'
import type { JsonObject } from '../../core/json.ts'
import type { RoomRequest } from '../rooms/act/rooms.ts'

/** A user of a hosted service, acting in this process. Each call resolves once it is durable; a ProtocolError says why it may not be. */
export interface HostedUser {
  readonly userId: UserId
  createRoom(request: RoomRequest): Promise<RoomId>
  join(roomId: RoomId): Promise<void>
  leave(roomId: RoomId): Promise<void>
  invite(roomId: RoomId, target: UserId): Promise<void>
  /** Sent once for each `txnId` of this user, however often it is asked: derive it from the event that is answered. */
  send(roomId: RoomId, type: string, content: JsonObject, txnId: string): Promise<string>
  setState(roomId: RoomId, type: string, stateKey: string, content: JsonObject): Promise<string>
  setProfile(field: 'displayname' | 'avatar_url', value: string): Promise<void>
}

/** What a hosted service is given. */
export interface HostedHost {
  /** The service's own user, or one of its namespace by localpart, who gets an account when there is none yet. */
  as(localpart?: string): Promise<HostedUser>
}

/**
 * An application service that runs in this process. Its registration is a file like any other, with `url: null` and `hosted`: a
 * module that exports `createHostedService(host: HostedHost): HostedService`.
 */
export interface HostedService {
  /**
   * Events that concern it, in order, in the client format. Called again with the same ones when it throws, or when the process ends
   * before it resolves; never again after. `others` are the transaction's other keys, for registrations that ask for them: `to_device`,
   * `device_lists`, `device_one_time_keys_count`, `device_unused_fallback_key_types`.
   */
  events(events: readonly JsonObject[], ephemeral: readonly JsonObject[], others: JsonObject): Promise<void>
  /** Makes a user of its namespace that somebody asks for; false for one that there is not. */
  findUser?(userId: UserId): Promise<boolean>
  /** Makes the room of an alias of its namespace. */
  findAlias?(alias: RoomAlias): Promise<boolean>
  protocol?(name: string): Promise<JsonObject | undefined>
  /** Users or places of a network with these fields. */
  search?(kind: 'user' | 'location', protocol: string, fields: URLSearchParams): Promise<JsonObject[]>
  /** Who a user id, or what an alias, stands for. */
  lookUp?(kind: 'user' | 'location', id: string): Promise<JsonObject[]>
}

export type CreateHostedService = (host: HostedHost) => HostedService
