import { ProtocolError } from '../../core/errors.ts'
import { membershipOf } from '../../core/event/content.ts'
import { type RoomId, type ServerName, serverOf } from '../../core/ids.ts'
import type { JsonObject } from '../../core/json.ts'
import { getState } from '../../core/state/trie.ts'
import { MAX_SPACE_CHILDREN_TOLD } from '../limits.ts'
import type { RoomRegistry } from '../rooms/registry.ts'
import type { Room } from '../rooms/room.ts'
import { childrenOf, opennessOf, summaryOf } from '../rooms/spaces/local-space.ts'
import type { ServerAccess } from './server-access.ts'

/** What other servers are shown of spaces. */
export interface SpaceAnswers {
  /**
   * A room with the rooms that it names, as far as users of the asking server may come in or look in (server-server API,
   * `GET hierarchy`).
   *
   * @throws ProtocolError `M_NOT_FOUND` where there is no such room, or none for them
   */
  hierarchy(asking: ServerName, roomId: RoomId, suggestedOnly: boolean): Promise<JsonObject>
}

export function createSpaceAnswers(parts: {
  readonly registry: RoomRegistry
  readonly access: ServerAccess
}): SpaceAnswers {
  const { registry, access } = parts

  /** Of a room that none of our users is in we know the past alone. */
  async function present(roomId: RoomId): Promise<Room | undefined> {
    const room = await registry.get(roomId)
    return room && room.localMembers.size > 0 ? room : undefined
  }

  async function mayKnow(server: ServerName, room: Room): Promise<boolean> {
    if (!(await access.isAllowed(server, room))) return false
    const { isOpen, allowed } = await opennessOf(room)
    if (isOpen || (await access.isIn(server, room)) || (await isInvited(server, room))) return true
    for (const id of allowed) {
      const other = await present(id)
      if (other && (await access.isIn(server, other))) return true
    }
    return false
  }

  return {
    async hierarchy(asking, roomId, suggestedOnly) {
      const room = await present(roomId)
      if (!room || !(await mayKnow(asking, room))) throw new ProtocolError('M_NOT_FOUND', 'There is no such room here.')
      const children = await childrenOf(room, suggestedOnly)
      const told: JsonObject[] = []
      const inaccessible: RoomId[] = []
      for (const child of children.slice(0, MAX_SPACE_CHILDREN_TOLD)) {
        const known = await present(child.roomId)
        if (!known) continue
        if (await mayKnow(asking, known)) told.push(await summaryOf(known))
        else inaccessible.push(child.roomId)
      }
      return {
        room: { ...(await summaryOf(room)), children_state: children.map(({ shown }) => shown) },
        children: told,
        inaccessible_children: inaccessible,
      }
    },
  }
}

async function isInvited(server: ServerName, room: Room): Promise<boolean> {
  const nids = [...room.keys.ofType('m.room.member')].flatMap(([user, keyId]) =>
    serverOf(user) === server ? [getState(room.committed.state, keyId)] : [],
  )
  const members = await room.events(nids.filter((nid) => nid !== 0))
  return [...members.values()].some((member) => membershipOf(member) === 'invite')
}
