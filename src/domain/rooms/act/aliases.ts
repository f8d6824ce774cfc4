import { ProtocolError } from '../../../core/errors.ts'
import {
  isRoomAlias,
  isRoomId,
  isServerName,
  localpartOf,
  type RoomAlias,
  type RoomId,
  type ServerName,
  serverOf,
} from '../../../core/ids.ts'
import type { Peers } from '../../../outbound/peers.ts'
import type { Database } from '../../../store/db/db.ts'
import { type AliasRow, deleteAlias, getAliases, getAliasesOfRoom, insertAlias } from '../../../store/rooms/aliases.ts'
import { getJoinedUsers } from '../../../store/rooms/rooms.ts'
import type { Requester } from '../../accounts/requester.ts'
import type { Clock } from '../../clock.ts'
import { MAX_ALIASES_PER_ROOM, MAX_SERVERS_TRIED } from '../../limits.ts'
import type { RoomAppservices } from '../room/appservices-of-room.ts'
import { mayName } from '../room/power.ts'
import type { RoomRegistry } from '../room/registry.ts'
import type { Room } from '../room/room.ts'
import type { RoomAccess } from '../room/room-access.ts'
import type { Appender } from '../write/append.ts'
import { withoutAlias } from './canonical-alias.ts'

/** The room that an alias leads to. */
export interface AliasTarget {
  readonly room_id: RoomId
  /** Servers through which the room can be joined. */
  readonly servers: readonly ServerName[]
}

/** Names of rooms on this server (client-server API, "Room aliases"). */
export interface Aliases {
  /**
   * Gives an alias to a room that the user is in. An application service may do so for any room that this server knows, in its own
   * namespace.
   *
   * @throws ProtocolError `M_EXCLUSIVE`; 409 `M_UNKNOWN` when the alias is taken, `M_INVALID_PARAM` when it cannot be one of this server
   */
  create(by: Requester, alias: RoomAlias, roomId: RoomId): Promise<void>
  /** Asks the alias's own server if it is another one. @throws ProtocolError `M_NOT_FOUND`, 502 `M_UNKNOWN` */
  resolve(alias: RoomAlias): Promise<AliasTarget>
  /**
   * An alias of this server. A service that manages it may create its room first. @throws ProtocolError `M_NOT_FOUND`, 408
   * `M_CONNECTION_TIMEOUT`
   */
  resolveHere(alias: RoomAlias): Promise<AliasTarget>
  /** The room for an id or an alias. @throws ProtocolError `M_INVALID_PARAM`, and as `resolve` */
  targetOf(idOrAlias: string): Promise<AliasTarget>
  /**
   * Allowed for the creator of the alias, and for users who may set the room's canonical alias. Removes it from the canonical alias too,
   * where the user may change that.
   *
   * @throws ProtocolError `M_EXCLUSIVE`, `M_FORBIDDEN`, `M_NOT_FOUND`
   */
  remove(by: Requester, alias: RoomAlias): Promise<void>
  /** All local aliases of a room, for its members. */
  ofRoom(by: Requester, roomId: RoomId): Promise<RoomAlias[]>
  /** Reserves an alias for a room that is about to be created. @throws ProtocolError `M_ROOM_IN_USE`, `M_INVALID_PARAM`, `M_EXCLUSIVE` */
  reserve(by: Requester, localpart: string, roomNid: number): Promise<RoomAlias>
  /** Releases the alias of a room that was not created. */
  release(alias: RoomAlias): Promise<void>
}

export interface AliasParts {
  readonly db: Database
  readonly serverName: ServerName
  readonly clock: Clock
  readonly access: RoomAccess
  readonly registry: RoomRegistry
  readonly appender: Appender
  readonly peers: Pick<Peers, 'query'>
  readonly appservices: Pick<RoomAppservices, 'requireAlias' | 'findAlias' | 'aliasesChanged'>
}

/** A reservation without a room expires after this time: its process is gone. */
const RESERVED_FOR_MS = 10 * 60 * 1000

export function createAliases(parts: AliasParts): Aliases {
  const { db, serverName, clock, access, registry } = parts

  function checkNew(alias: string): asserts alias is RoomAlias {
    if (!isRoomAlias(alias) || !/^[^\s:]+$/.test(localpartOf(alias))) {
      throw new ProtocolError(
        'M_INVALID_PARAM',
        'This is no room alias: `#name:server` without spaces, 255 bytes at most.',
      )
    }
    if (serverOf(alias) !== serverName) {
      throw new ProtocolError('M_INVALID_PARAM', `Aliases made here end in :${serverName}.`)
    }
  }

  async function take(by: Requester, alias: RoomAlias, roomNid: number): Promise<boolean> {
    const ts = clock.now()
    const isTaken = await db.tx((tx) =>
      insertAlias(tx, { alias, roomNid, creatorNid: by.userNid, ts, staleBefore: ts - RESERVED_FOR_MS }),
    )
    parts.appservices.aliasesChanged(roomNid)
    return isTaken
  }

  async function find(alias: RoomAlias): Promise<AliasRow> {
    const [row] = await getAliases(db, [alias])
    if (!row) throw new ProtocolError('M_NOT_FOUND', 'No room has this alias.')
    return row
  }

  async function known(roomId: RoomId): Promise<Room> {
    const room = await registry.get(roomId)
    if (!room) throw new ProtocolError('M_NOT_FOUND', 'This server knows no room of that id.')
    return room
  }

  async function resolveHere(alias: RoomAlias): Promise<AliasTarget> {
    const { room_id, room_nid } = await find(alias).catch(async (error: unknown) => {
      if (await parts.appservices.findAlias(alias)) return find(alias)
      throw error
    })
    const room = await registry.getByNid(room_nid)
    const others = [...(await room.servers.of(() => getJoinedUsers(db, room_nid))).keys()]
    return { room_id, servers: [...new Set([serverName, ...others])].slice(0, MAX_SERVERS_TRIED) }
  }

  async function resolve(alias: RoomAlias): Promise<AliasTarget> {
    const server = serverOf(alias)
    if (server === serverName) return resolveHere(alias)
    const found = await parts.peers.query(server, `query/directory?room_alias=${encodeURIComponent(alias)}`)
    const { room_id, servers } = found
    if (!isRoomId(room_id)) throw new ProtocolError('M_NOT_FOUND', `${server} does not know the alias ${alias}.`)
    const listed = Array.isArray(servers) ? servers.filter((name) => typeof name === 'string').filter(isServerName) : []
    return { room_id, servers: [...new Set([server, ...listed])].slice(0, MAX_SERVERS_TRIED) }
  }

  async function dropFromCanonical(by: Requester, { alias, room_id }: AliasRow): Promise<void> {
    try {
      await parts.appender.append(room_id, async (room) => {
        const current = await room.stateEvent('m.room.canonical_alias', '', room.pending.state)
        const content = current && withoutAlias(current.content, alias)
        if (!content) return []
        return [{ type: 'm.room.canonical_alias', stateKey: '', content, sender: by.userId, senderNid: by.userNid }]
      })
    } catch (error) {
      // The alias itself is removed all the same.
      if (!(error instanceof ProtocolError && error.errcode === 'M_FORBIDDEN')) throw error
    }
  }

  return {
    async create(by, alias, roomId) {
      checkNew(alias)
      parts.appservices.requireAlias(by, alias)
      const room = by.appservice === undefined ? await access.mustBeInRoom(by, roomId) : await known(roomId)
      if ((await getAliasesOfRoom(db, room.nid)).length >= MAX_ALIASES_PER_ROOM) {
        throw new ProtocolError('M_FORBIDDEN', `A room may have ${MAX_ALIASES_PER_ROOM} aliases.`)
      }
      if (await take(by, alias, room.nid)) return
      throw new ProtocolError('M_UNKNOWN', `The alias ${alias} is taken.`, { status: 409 })
    },

    resolve,
    resolveHere,

    async targetOf(idOrAlias) {
      if (isRoomId(idOrAlias)) return { room_id: idOrAlias, servers: [] }
      if (isRoomAlias(idOrAlias)) return resolve(idOrAlias)
      throw new ProtocolError('M_INVALID_PARAM', 'This is neither a room id nor a room alias.')
    },

    async remove(by, alias) {
      parts.appservices.requireAlias(by, alias)
      const row = await find(alias)
      if (row.creator_nid !== by.userNid && !(await mayName(await registry.getByNid(row.room_nid), by))) {
        throw new ProtocolError('M_FORBIDDEN', 'An alias is removed by who made it or who may name its room.')
      }
      await db.tx((tx) => deleteAlias(tx, alias))
      parts.appservices.aliasesChanged(row.room_nid)
      await dropFromCanonical(by, row)
    },

    async ofRoom(by, roomId) {
      const room = await access.mustPeek(by, roomId)
      return (await getAliasesOfRoom(db, room.nid)).map(({ alias }) => alias)
    },

    async reserve(by, localpart, roomNid) {
      const alias = `#${localpart}:${serverName}`
      checkNew(alias)
      parts.appservices.requireAlias(by, alias)
      if (await take(by, alias, roomNid)) return alias
      throw new ProtocolError('M_ROOM_IN_USE', `The alias ${alias} is taken.`)
    },

    release: (alias) => db.tx((tx) => deleteAlias(tx, alias)),
  }
}
