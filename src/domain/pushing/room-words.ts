import { canonicalAliasOf, displayNameOf, roomNameOf } from '../../core/event/content.ts'
import { isObject, type JsonObject } from '../../core/json.ts'
import type { Reader } from '../../store/db/db.ts'
import { getStrippedState } from '../../store/events/stripped-state.ts'
import type { RoomRegistry } from '../rooms/room/registry.ts'
import type { RoomEvent } from '../rooms/room/room-event.ts'

/** What people call the room and the sender of an event, as far as they have names. */
export interface RoomWords {
  readonly roomName: string | undefined
  readonly roomAlias: string | undefined
  readonly senderName: string | undefined
}

export type WordsOf = (event: RoomEvent) => Promise<RoomWords>

/** Of a room that this server is not in, the names are those that came with the invitation. */
export function createRoomWords({
  db,
  registry,
}: {
  readonly db: Reader
  readonly registry: Pick<RoomRegistry, 'getByNid'>
}): WordsOf {
  async function stateOf(event: RoomEvent): Promise<(type: string, key: string) => Promise<Stated | undefined>> {
    if (event.isInTimeline) {
      const room = await registry.getByNid(event.roomNid)
      return (type, key) => room.stateEvent(type, key)
    }
    const state = await getStrippedState(db, event.id)
    return async (type, key) => {
      const found = state.find((one) => one.type === type && one.state_key === key)
      return isObject(found?.content) ? { content: found.content } : undefined
    }
  }

  return async (event) => {
    const state = await stateOf(event)
    const [name, alias, member] = await Promise.all([
      state('m.room.name', ''),
      state('m.room.canonical_alias', ''),
      state('m.room.member', event.sender),
    ])
    return { roomName: roomNameOf(name), roomAlias: canonicalAliasOf(alias), senderName: displayNameOf(member) }
  }
}

interface Stated {
  readonly content: JsonObject
}
