import { ProtocolError } from '../../../core/errors.ts'
import type { BuiltEvent } from '../../../core/event/build.ts'
import { joinAuthoriserOf } from '../../../core/event/content.ts'
import type { EventId, RoomId, ServerName, UserId } from '../../../core/ids.ts'
import { serverOf } from '../../../core/ids.ts'
import { isObject, type JsonObject, readExactJson } from '../../../core/json.ts'
import { createKeyedQueue } from '../../../core/keyed-queue.ts'
import { ROOM_VERSIONS, type RoomVersion, roomVersion } from '../../../core/room-version.ts'
import type { MembershipStep } from '../../../outbound/peer-memberships.ts'
import type { Peers } from '../../../outbound/peers.ts'
import { MAX_SERVERS_TRIED } from '../../limits.ts'
import type { KeyRing } from '../receive/federation-queries.ts'
import type { RoomStateAnswer } from '../receive/state-intake.ts'
import type { RoomRegistry } from '../room/registry.ts'
import { strippedStateIn } from '../room/stripped-state.ts'
import { wholeRoom } from '../room/whole-room.ts'
import { buildFromTemplate, type RemoteJoinParts, withAuthoriser } from './join.ts'
import type { ProcessJoin } from './process-join.ts'

/** A membership that a user of ours requests in a room that this server is not in. */
export interface RemoteWish {
  readonly roomId: RoomId
  readonly userId: UserId
  /** The rest of the content: profile, reason. */
  readonly content: JsonObject
  /** Servers that may be in the room, the likeliest first. */
  readonly via: readonly ServerName[]
}

/** Memberships in rooms of other servers (server-server API, "Joining Rooms", "Knocking upon a room", "Leaving Rooms"). */
export interface ResidentServers {
  /**
   * Tries one server after another until one lets the user in. Resolves when this server is in the room.
   *
   * @throws ProtocolError why none does; `M_FORBIDDEN` when none knows the room
   */
  join(wish: RemoteWish): Promise<void>
  /** Returns the event that one of the servers accepted. @throws ProtocolError why none does */
  leave(wish: RemoteWish): Promise<BuiltEvent>
  /** The same, with the stripped state of the room. @throws as {@link join} */
  knock(wish: RemoteWish): Promise<Knock>
}

export interface Knock {
  readonly version: RoomVersion
  readonly built: BuiltEvent
  readonly shown: readonly JsonObject[]
}

/** The server that created a room, as its id says. Room ids of version 12 do not say it. */
export function makerOf(roomId: RoomId): ServerName[] {
  const colon = roomId.indexOf(':')
  return colon === -1 ? [] : [roomId.slice(colon + 1) as ServerName]
}

/** Errors that every other server would repeat. */
const FINAL: ReadonlySet<string> = new Set(['M_INCOMPATIBLE_ROOM_VERSION', 'M_UNSUPPORTED_ROOM_VERSION'])

/** Whether an error says more about the room than that this server cannot help. */
function isTelling({ status, errcode }: ProtocolError): boolean {
  return status < 500 && errcode !== 'M_NOT_FOUND'
}

export function createResidentServers(
  parts: RemoteJoinParts & {
    readonly peers: Peers
    readonly processJoin: ProcessJoin
    readonly keys: KeyRing
    readonly registry: Pick<RoomRegistry, 'get' | 'getByNid'>
    /** Whether the federation policy allows a server. */
    readonly outgoing: { reaches(server: ServerName): boolean }
  },
): ResidentServers {
  const { peers, processJoin, keys, serverName, outgoing, registry } = parts
  const understood = ROOM_VERSIONS.map(({ id }) => id)

  /** Servers do not say whether a room refuses a user or is unknown to them. The user gets `M_FORBIDDEN` for both. */
  async function intoAny<T>(wish: RemoteWish, attempt: (server: ServerName) => Promise<T>): Promise<T> {
    return throughAny(wish, attempt).catch((error: unknown) => {
      if (!(error instanceof ProtocolError) || error.errcode !== 'M_NOT_FOUND') throw error
      throw new ProtocolError('M_FORBIDDEN', `${error.message} There is no such room, or it is not open to you.`)
    })
  }

  const arriving = createKeyedQueue<RoomId>()

  /** Whether this server is or was in the room. */
  async function isKnown(roomId: RoomId): Promise<boolean> {
    const room = await registry.get(roomId)
    return room !== undefined && room.pending.extremities.length > 0
  }

  async function throughAny<T>({ via, roomId }: RemoteWish, attempt: (server: ServerName) => Promise<T>): Promise<T> {
    let reason = new ProtocolError('M_NOT_FOUND', `No server is known through which ${roomId} could be reached.`)
    const others = [...new Set(via)].filter((each) => each !== serverName)
    const reached = others.filter(outgoing.reaches)
    // If the policy refuses all servers, asking one gives the reason.
    for (const server of (reached.length > 0 ? reached : others).slice(0, MAX_SERVERS_TRIED)) {
      try {
        return await attempt(server)
      } catch (error) {
        if (!(error instanceof ProtocolError)) throw error
        if (FINAL.has(error.errcode)) throw error
        if (!isTelling(reason)) reason = error
      }
    }
    throw reason
  }

  async function build(server: ServerName, step: MembershipStep, wish: RemoteWish) {
    const { roomId, userId, content } = wish
    const { roomVersion: id = '1', event } = await peers.make(server, step, roomId, userId, understood)
    const version = roomVersion(id)
    if (!version) {
      throw new ProtocolError('M_UNSUPPORTED_ROOM_VERSION', `This server does not know rooms of version ${id}.`)
    }
    const built = buildFromTemplate(parts, { version, roomId, userId, membership: step, content }, event)
    return { version, built }
  }

  async function authoriserKeys(
    version: RoomVersion,
    { pdu }: BuiltEvent,
    returned: unknown,
  ): Promise<Map<string, string>> {
    const authoriser = version.restrictedJoins ? joinAuthoriserOf(pdu.content) : undefined
    const server = authoriser === undefined ? undefined : serverOf(authoriser as UserId)
    const all = isObject(returned as JsonObject) ? (returned as JsonObject).signatures : undefined
    const own = server !== undefined && isObject(all) && Object.hasOwn(all, server) ? all[server] : undefined
    if (server === undefined || !isObject(own)) return new Map()
    const known = await keys.keysOf(server, Object.keys(own))
    return new Map(known.map(({ keyId, publicKey }) => [keyId, publicKey]))
  }

  /**
   * The answer must hold all members if another of our users, or this one by another request, came into the room meanwhile. Nothing is
   * needed if the user is in it already.
   */
  async function wholeOf(server: ServerName, { roomId, userId }: RemoteWish, joinId: EventId) {
    const room = await registry.get(roomId)
    if (!room || [...room.localMembers.values()].some((member) => member.userId === userId)) return undefined
    await wholeRoom(registry, room)
    return peers.state(server, roomId, joinId)
  }

  async function joinThrough(server: ServerName, wish: RemoteWish): Promise<void> {
    const { version, built } = await build(server, 'join', wish)
    // Members can be written later only if all that we know of the room is this one answer.
    const omitsMembers = !(await isKnown(wish.roomId))
    const answered = await peers.sendJoin(server, wish.roomId, built.eventId, built.json, omitsMembers)
    const json = withAuthoriser(version, built, answered.event, await authoriserKeys(version, built, answered.event))
    const process = (answer: RoomStateAnswer) => processJoin(server, version, wish.roomId, readExactJson(json), answer)
    // Of several users who join at once, the first gets the room while nobody here knows it.
    const first = await arriving.run(wish.roomId, async () =>
      answered.areMembersOmitted && (await isKnown(wish.roomId)) ? undefined : process(answered),
    )
    const whole = first ? undefined : await wholeOf(server, wish, built.eventId)
    if (!first && !whole) return
    const received = first ?? (await process(whole!))
    if (received.kind === 'accepted' || received.kind === 'known') return
    const text = `What ${server} tells of the room cannot be used: ${received.reason ?? received.kind}.`
    throw new ProtocolError('M_UNKNOWN', text, { status: 502 })
  }

  return {
    join: (wish) => intoAny(wish, (server) => joinThrough(server, wish)),
    leave: (wish) =>
      throughAny(wish, async (server) => {
        const { built } = await build(server, 'leave', wish)
        await peers.sendLeave(server, wish.roomId, built.eventId, built.json)
        return built
      }),
    knock: (wish) =>
      intoAny(wish, async (server) => {
        const { version, built } = await build(server, 'knock', wish)
        const shown = await peers.sendKnock(server, wish.roomId, built.eventId, built.json)
        return { version, built, shown: strippedStateIn([...shown]) }
      }),
  }
}
