import { ProtocolError } from '../../core/errors.ts'
import type { RoomId, ServerName } from '../../core/ids.ts'
import type { JsonObject } from '../../core/json.ts'
import { MAX_SPACE_CHILDREN_SENT } from '../limits/spaces.ts'
import { childrenOf, summaryOf } from '../rooms/act/spaces/local-space.ts'
import type { RoomRegistry } from '../rooms/room/registry.ts'
import type { Room } from '../rooms/room/room.ts'
import type { ServerAccess } from './server-access.ts'

/** Answers other servers about spaces. */
export interface SpaceAnswers {
  /**
   * A room and its children, as far as the asking server's users may join or read them (server-server API, `GET hierarchy`).
   *
   * @throws ProtocolError `M_NOT_FOUND` if there is no such room, or they may not know of it
   */
  hierarchy(asking: ServerName, roomId: RoomId, suggestedOnly: boolean): Promise<JsonObject>
}

export function createSpaceAnswers(parts: {
  readonly registry: RoomRegistry
  readonly access: ServerAccess
}): SpaceAnswers {
  const { registry, access } = parts

  /** If no local user is in a room, what we know of it is out of date. */
  async function present(roomId: RoomId): Promise<Room | undefined> {
    const room = await registry.get(roomId)
    return room && room.localMembers.size > 0 ? room : undefined
  }

  const mayKnow = async (server: ServerName, room: Room) =>
    (await access.isAllowed(server, room)) && (await access.mayKnowOf(server, room))

  return {
    async hierarchy(asking, roomId, suggestedOnly) {
      const room = await present(roomId)
      if (!room || !(await mayKnow(asking, room))) throw new ProtocolError('M_NOT_FOUND', 'There is no such room here.')
      const children = await childrenOf(room, suggestedOnly)
      const summaries: JsonObject[] = []
      const inaccessible: RoomId[] = []
      for (const child of children.slice(0, MAX_SPACE_CHILDREN_SENT)) {
        const known = await present(child.roomId)
        if (!known) continue
        if (await mayKnow(asking, known)) summaries.push(await summaryOf(known))
        else inaccessible.push(child.roomId)
      }
      return {
        room: { ...(await summaryOf(room)), children_state: children.map(({ shown }) => shown) },
        children: summaries,
        inaccessible_children: inaccessible,
      }
    },
  }
}
