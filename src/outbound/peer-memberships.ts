import { ProtocolError } from '../core/errors.ts'
import { type EventId, isServerName, type RoomId, type ServerName, type UserId } from '../core/ids.ts'
import { isObject, type JsonObject, type JsonValue } from '../core/json.ts'
import type { FederationAnswer } from './federation.ts'
import { MAX_NAMED_SERVERS } from './limits.ts'
import { ourFault, UnknownPath, unreachable } from './peer-errors.ts'
import { exactly, objectOf, type PeerRequests, path, type StateAnswer } from './peer-requests.ts'

/** A template of another server for an event of a local user. */
export interface ProposedEvent {
  /** Undefined from old servers, whose rooms have version 1 or 2. */
  readonly roomVersion: string | undefined
  readonly event: JsonValue
}

/** The answer of a resident server to our join. */
export interface SendJoinAnswer extends StateAnswer {
  /** The join as that server has it; undefined if the answer does not contain it. */
  readonly event: JsonValue | undefined
  /** Whether the state lacks most members (partial state). */
  readonly areMembersOmitted: boolean
  /** The servers in the room, if the answer lists them. */
  readonly servers: readonly ServerName[]
}

export type MembershipStep = 'join' | 'leave' | 'knock'

/** Joins, leaves, knocks and invites through other homeservers. Each throws as the operations of `Peers` do. */
export interface PeerMemberships {
  make(
    of: string,
    step: MembershipStep,
    roomId: RoomId,
    userId: UserId,
    versions: readonly string[],
  ): Promise<ProposedEvent>
  /** @param json the signed event, canonical @param omitsMembers the answer may leave out members that are not needed at first */
  sendJoin(of: string, roomId: RoomId, eventId: EventId, json: string, omitsMembers?: boolean): Promise<SendJoinAnswer>
  sendLeave(of: string, roomId: RoomId, eventId: EventId, json: string): Promise<void>
  sendKnock(of: string, roomId: RoomId, eventId: EventId, json: string): Promise<readonly JsonValue[]>
  /** Returns the invitation with the signature of the invited user's server. */
  invite(of: string, invitation: Invitation): Promise<JsonValue>
  exchangeInvite(of: string, roomId: RoomId, event: JsonObject): Promise<void>
}

export interface Invitation {
  readonly roomId: RoomId
  readonly eventId: EventId
  readonly roomVersion: string
  readonly event: JsonObject
  readonly inviteState: readonly JsonObject[]
  /** Whether the first version of the operation may be used: for rooms of version 1 and 2. */
  readonly isOld: boolean
}

export function createPeerMemberships({ get, put, askState }: PeerRequests): PeerMemberships {
  return {
    async make(of, step, roomId, userId, versions) {
      const query =
        step === 'leave' ? '' : `?${versions.map((version) => `ver=${encodeURIComponent(version)}`).join('&')}`
      const answer = await get(of, path('v1', `make_${step}`, roomId, userId) + query)
      const { room_version: roomVersion, event } = objectOf(of, exactly(answer))
      return { roomVersion: typeof roomVersion === 'string' ? roomVersion : undefined, event: event ?? null }
    },
    async sendJoin(of, roomId, eventId, json, omitsMembers = false) {
      const send = (version: string, query: string) =>
        askState(of, { method: 'PUT', path: path(version, 'send_join', roomId, eventId) + query, body: json }, 'state')
      const answer = await send('v2', omitsMembers ? '?omit_members=true' : '')
        .catch((error) => {
          if (error instanceof UnknownPath) return send('v1', '')
          throw error
        })
        .catch(ourFault(of))
      const { event, members_omitted: omitted, servers_in_room: servers } = answer.rest
      const names = Array.isArray(servers) ? servers.slice(0, MAX_NAMED_SERVERS).filter(isName) : []
      return { ...answer, event, areMembersOmitted: omitsMembers && omitted === true, servers: names }
    },
    async sendLeave(of, roomId, eventId, json) {
      const send = (version: string) => put(of, path(version, 'send_leave', roomId, eventId), json)
      await withOlder(
        () => send('v2'),
        () => send('v1'),
      ).catch(ourFault(of))
    },
    async sendKnock(of, roomId, eventId, json) {
      const sent = put(of, path('v1', 'send_knock', roomId, eventId), json).catch(ourFault(of))
      const answer = objectOf(of, await sent)
      return Array.isArray(answer.knock_room_state) ? answer.knock_room_state : []
    },
    async invite(of, { roomId, eventId, roomVersion, event, inviteState, isOld }) {
      const body = { room_version: roomVersion, event, invite_room_state: [...inviteState] }
      const where = (version: string) => path(version, 'invite', roomId, eventId)
      const newer = async () => objectOf(of, await put(of, where('v2'), body)).event ?? null
      const old = { ...event, unsigned: { invite_room_state: [...inviteState] } }
      const older = async () => secondOf(of, await put(of, where('v1'), old)).event ?? null
      return (isOld ? withOlder(newer, older) : newer()).catch(ourFault(of))
    },
    async exchangeInvite(of, roomId, event) {
      await put(of, path('v1', 'exchange_third_party_invite', roomId), event)
    },
  }
}

/** Uses the second version of an operation, or the first if the server may know only that (seed 3, "Versioning"). */
async function withOlder<Result>(newer: () => Promise<Result>, older: () => Promise<Result>): Promise<Result> {
  try {
    return await newer()
  } catch (error) {
    const isPlain = error instanceof ProtocolError && (error.status === 400 || error.status === 404)
    const mayBeOld = isPlain && error.errcode !== 'M_INCOMPATIBLE_ROOM_VERSION'
    if (!mayBeOld && !(error instanceof UnknownPath)) throw error
    return older().catch((second: unknown) => {
      throw second instanceof UnknownPath ? error : second
    })
  }
}

function secondOf(of: string, { body }: FederationAnswer): JsonObject {
  const second = Array.isArray(body) ? body[1] : undefined
  if (!isObject(second)) throw unreachable(of, 'its answer makes no sense')
  return second
}

const isName = (value: JsonValue): value is ServerName => typeof value === 'string' && isServerName(value)
