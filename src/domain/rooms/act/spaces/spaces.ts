import type { ByteBudget } from '../../../../core/byte-budget.ts'
import { ProtocolError } from '../../../../core/errors.ts'
import type { SpaceChild } from '../../../../core/event/space-child.ts'
import { isRoomId, type RoomId, type ServerName, serverOf } from '../../../../core/ids.ts'
import type { JsonObject } from '../../../../core/json.ts'
import type { Peers } from '../../../../outbound/peers.ts'
import type { Membership } from '../../../../store/rooms/rooms.ts'
import type { Requester } from '../../../accounts/requester.ts'
import type { Clock } from '../../../clock.ts'
import { MAX_ALLOWED_ROOMS_TRIED } from '../../../limits/spaces.ts'
import type { UserRooms } from '../../../sync/user-rooms.ts'
import { makerOf } from '../../remote/resident-servers.ts'
import type { EventCache } from '../../room/event-cache.ts'
import type { RoomRegistry } from '../../room/registry.ts'
import { childrenOf, type Openness, opennessOf, summaryOf } from './local-space.ts'
import { createRemoteSpaces } from './remote-spaces.ts'
import { type Sight, type TreeQuery, walkTree } from './tree.ts'

/** Summaries of rooms for users who may join them, one by one or as the tree of a space. */
export interface Spaces {
  /**
   * A page of the tree of a space's rooms, depth first (client-server API, `GET hierarchy`).
   *
   * @throws ProtocolError `M_FORBIDDEN` where there is no such room for the user, `M_INVALID_PARAM` for a token that is not ours
   */
  hierarchy(by: Requester, roomId: RoomId, query: TreeQuery): Promise<JsonObject>
  /** The same for an operator: every room that this server is or was in, whoever may join it. No other server is asked. */
  wholeHierarchy(roomId: RoomId, query: TreeQuery): Promise<JsonObject>
  /**
   * @param by undefined for an anonymous user, for whom no other server is asked
   * @param via servers that may be in the room, if this one is not
   * @throws ProtocolError `M_NOT_FOUND` where there is no such room for the user
   */
  summary(by: Requester | undefined, roomId: RoomId, via: readonly ServerName[]): Promise<JsonObject>
}

export interface SpaceParts {
  readonly budget: ByteBudget
  readonly registry: RoomRegistry
  readonly events: EventCache
  readonly userRooms: UserRooms
  readonly peers: Pick<Peers, 'query'>
  readonly clock: Clock
  readonly serverName: ServerName
}

const OPEN_ELSEWHERE: ReadonlySet<unknown> = new Set(['public', 'knock', 'knock_restricted'])

export function createSpaces(parts: SpaceParts): Spaces {
  const { registry, events, userRooms, clock } = parts
  const askForSpace = createRemoteSpaces(parts)

  async function membershipOf(
    by: Requester,
    roomId: RoomId,
  ): Promise<{ is: Membership; inviter: ServerName[] } | undefined> {
    const room = await registry.get(roomId)
    const known = room && (await userRooms.of(by.userNid)).get(room.nid)
    if (!known) return undefined
    const event = known.membership === 'invite' ? (await events.load([known.eventNid])).get(known.eventNid) : undefined
    return { is: known.membership, inviter: event ? [serverOf(event.sender)] : [] }
  }

  async function maySee(by: Requester | undefined, roomId: RoomId, { isOpen, allowed }: Openness): Promise<boolean> {
    if (isOpen || !by) return isOpen
    const membership = (await membershipOf(by, roomId))?.is
    if (membership === 'join' || membership === 'invite') return true
    if (membership === 'ban') return false
    for (const id of allowed.slice(0, MAX_ALLOWED_ROOMS_TRIED)) {
      if ((await registry.get(id))?.localMembers.has(by.userNid)) return true
    }
    return false
  }

  /** A room that this server is in, so that no other server need be asked. Null if the user may not see it. */
  async function seeHere(
    by: Requester | undefined,
    roomId: RoomId,
    suggestedOnly: boolean,
  ): Promise<Sight | null | undefined> {
    const room = await registry.get(roomId)
    if (!room || room.localMembers.size === 0) return undefined
    if (!(await maySee(by, roomId, await opennessOf(room)))) return null
    const [summary, children] = await Promise.all([summaryOf(room), childrenOf(room, suggestedOnly)])
    return { summary, children }
  }

  async function seeElsewhere(
    by: Requester,
    roomId: RoomId,
    via: readonly ServerName[],
    suggestedOnly: boolean,
  ): Promise<Sight | undefined> {
    const inviter = (await membershipOf(by, roomId))?.inviter ?? []
    const space = await askForSpace(roomId, [...inviter, ...via, ...makerOf(roomId)], suggestedOnly)
    if (!space || !(await maySee(by, roomId, opennessIn(space.summary)))) return undefined
    const isWanted = ({ isSuggested }: SpaceChild) => isSuggested || !suggestedOnly
    return { ...space, children: space.children.filter(isWanted) }
  }

  return {
    hierarchy: (by, roomId, query) =>
      walkTree(roomId, query, clock, {
        here: (id, suggestedOnly) => seeHere(by, id, suggestedOnly),
        elsewhere: (id, via, suggestedOnly) => seeElsewhere(by, id, via, suggestedOnly),
        maySee: (summary) => maySee(by, summary.room_id as RoomId, opennessIn(summary)),
      }),

    wholeHierarchy: (roomId, query) =>
      walkTree(roomId, query, clock, {
        async here(id, suggestedOnly) {
          const room = await registry.get(id)
          if (!room) return null
          const [summary, children] = await Promise.all([summaryOf(room), childrenOf(room, suggestedOnly)])
          return { summary, children }
        },
        elsewhere: async () => undefined,
        maySee: async () => false,
      }),

    async summary(by, roomId, via) {
      const here = await seeHere(by, roomId, false)
      const seen = here === undefined && by ? await seeElsewhere(by, roomId, via, false) : here
      if (!seen) throw new ProtocolError('M_NOT_FOUND', 'There is no such room for you to see.')
      const membership = by && (await membershipOf(by, roomId))?.is
      return { ...seen.summary, ...(membership !== undefined && { membership }) }
    },
  }
}

function opennessIn({ world_readable, join_rule: rule, allowed_room_ids: allowed }: JsonObject): Openness {
  return {
    // The default is `public` (client-server API, `PublishedRoomsChunk`).
    isOpen: world_readable === true || OPEN_ELSEWHERE.has(rule ?? 'public'),
    allowed: rule === 'restricted' && Array.isArray(allowed) ? allowed.filter(isRoomId) : [],
  }
}
