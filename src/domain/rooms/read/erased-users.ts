import { redact } from '../../../core/event/redact.ts'
import { encodeCanonical } from '../../../core/signing/canonical-json.ts'
import { listErasedUsers } from '../../../store/accounts/deactivations.ts'
import type { Reader } from '../../../store/db/db.ts'
import type { EventCache } from '../room/event-cache.ts'
import type { Room } from '../room/room.ts'
import { RoomEvent } from '../room/room-event.ts'

/**
 * Users who asked for erasure. Their messages are shown redacted to everybody who was not in the room by then (client-server API, `POST
 * account/deactivate`, `erase`). State stays readable: rooms keep their names.
 */
export interface ErasedUsers {
  /** The position in the event stream at which the user was erased; undefined for all others. */
  positionOf(userNid: number): number | undefined
  /** Notes a committed erasure. */
  add(userNid: number, position: number): void
  /**
   * The events as one reader sees them, who was in the room at some of them and not at others.
   *
   * @param wasInRoom whether the reader was in the room at an event, or joined between it and a stream position
   */
  veil(
    room: Room,
    events: readonly RoomEvent[],
    wasInRoom: () => Promise<(event: RoomEvent, position: number) => boolean>,
  ): Promise<readonly RoomEvent[]>
}

export async function openErasedUsers({ db, events }: { db: Reader; events: EventCache }): Promise<ErasedUsers> {
  const positions = new Map<number, number>()
  for (const { user_nid, erased_pos } of await listErasedUsers(db)) positions.set(user_nid, erased_pos ?? 0)

  /** State of erased users that these events replaced and repeat. */
  async function erasedBefore(candidates: readonly RoomEvent[]): Promise<ReadonlyMap<number, RoomEvent>> {
    const nids = candidates.flatMap(({ replacesNid }) => replacesNid ?? [])
    const replaced = nids.length === 0 ? [] : [...(await events.load(nids)).values()]
    return new Map(replaced.filter(({ senderNid }) => positions.has(senderNid)).map((event) => [event.nid, event]))
  }

  return {
    positionOf: (userNid) => positions.get(userNid),
    add: (userNid, position) => void (positions.has(userNid) || positions.set(userNid, position)),
    async veil(room, candidates, wasInRoom) {
      if (positions.size === 0) return candidates
      const before = await erasedBefore(candidates)
      if (before.size === 0 && !candidates.some(({ senderNid }) => positions.has(senderNid))) return candidates
      const wasThere = await wasInRoom()
      const isVeiled = (event: RoomEvent | undefined): boolean => {
        const position = event && positions.get(event.senderNid)
        return position !== undefined && !wasThere(event!, position)
      }
      return candidates.map((event) => {
        if (isVeiled(event)) return copyOf(event, encodeCanonical(redact(room.version, event.pdu)))
        const replaced = event.replacesNid === undefined ? undefined : before.get(event.replacesNid)
        return isVeiled(replaced) ? copyOf(event, event.json) : event
      })
    },
  }
}

/** A copy of an event for one reader, without the content of the state that it replaced. */
function copyOf(event: RoomEvent, json: string): RoomEvent {
  return new RoomEvent({ ...event.toRow(), replaces_nid: null, json }, undefined, true)
}
