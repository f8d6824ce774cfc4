import type { RoomAlias, RoomId, UserId } from '../../core/ids.ts'
import type { JsonObject } from '../../core/json.ts'
import type { RoomRequest } from '../rooms/act/rooms.ts'

/** A user of a hosted service, acting in this process. Each call resolves once it is durable, or rejects with a ProtocolError. */
export interface HostedUser {
  readonly userId: UserId
  createRoom(request: RoomRequest): Promise<RoomId>
  join(roomId: RoomId): Promise<void>
  leave(roomId: RoomId): Promise<void>
  invite(roomId: RoomId, target: UserId): Promise<void>
  /** Sends once for each `txnId` of this user, however often it is called. Derive the id from the event that it answers. */
  send(roomId: RoomId, type: string, content: JsonObject, txnId: string): Promise<string>
  setState(roomId: RoomId, type: string, stateKey: string, content: JsonObject): Promise<string>
  setProfile(field: 'displayname' | 'avatar_url', value: string): Promise<void>
}

/** What a hosted service can do. */
export interface HostedHost {
  /** The service's own user, or one of its namespace by localpart. An account is made if there is none yet. */
  as(localpart?: string): Promise<HostedUser>
}

/**
 * An application service that runs in this process. Its registration is a file like any other, with `url: null` and `hosted`: a
 * module that exports `createHostedService(host: HostedHost): HostedService`.
 */
export interface HostedService {
  /**
   * Events that concern it, in order, in the client format. The same ones come again if it throws, or if the process ends before it
   * resolves; never after that. `others` are the transaction's other keys, for registrations that ask for them: `to_device`,
   * `device_lists`, `device_one_time_keys_count`, `device_unused_fallback_key_types`.
   */
  events(events: readonly JsonObject[], ephemeral: readonly JsonObject[], others: JsonObject): Promise<void>
  /** Makes a requested user of its namespace; false if there is no such user. */
  findUser?(userId: UserId): Promise<boolean>
  /** Makes the room of a requested alias of its namespace. */
  findAlias?(alias: RoomAlias): Promise<boolean>
  protocol?(name: string): Promise<JsonObject | undefined>
  /** Users or locations of a network with these fields. */
  search?(kind: 'user' | 'location', protocol: string, fields: URLSearchParams): Promise<JsonObject[]>
  /** What a user id or an alias stands for on the network. */
  lookUp?(kind: 'user' | 'location', id: string): Promise<JsonObject[]>
}

export type CreateHostedService = (host: HostedHost) => HostedService
