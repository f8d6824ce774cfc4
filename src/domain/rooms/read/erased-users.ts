import { redact } from '../../../core/event/redact.ts'
import { encodeCanonical } from '../../../core/signing/canonical-json.ts'
import { findErasedUsers, listErasedUsers } from '../../../store/accounts/deactivations.ts'
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
  /** Whether surely nobody was erased. */
  isEmpty(): boolean
  /** Notes a committed erasure. */
  add(userNid: number, position: number): void
  /** Notes that an erased user has their account again. */
  remove(userNid: number): void
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

type WasInRoom = Parameters<ErasedUsers['veil']>[2]

export async function openErasedUsers({ db, events }: { db: Reader; events: EventCache }): Promise<ErasedUsers> {
  const positions = new Map<number, number>()
  for (const { user_nid, erased_pos } of await listErasedUsers(db)) positions.set(user_nid, erased_pos ?? 0)
  return {
    positionOf: (userNid) => positions.get(userNid),
    isEmpty: () => positions.size === 0,
    add: (userNid, position) => void (positions.has(userNid) || positions.set(userNid, position)),
    remove: (userNid) => void positions.delete(userNid),
    async veil(room, candidates, wasInRoom) {
      if (positions.size === 0) return candidates
      return veilBy(positions, await replacedBy(events, candidates), { room, candidates, wasInRoom })
    },
  }
}

/** Erased users as a node that stands by sees them: those whose events are shown are looked up each time. */
export function lookUpErasedUsers(parts: {
  readonly db: Reader
  readonly events: EventCache
}): Pick<ErasedUsers, 'veil' | 'isEmpty'> {
  const { db, events } = parts
  return {
    isEmpty: () => false,
    async veil(room, candidates, wasInRoom) {
      if (candidates.length === 0) return candidates
      const replaced = await replacedBy(events, candidates)
      const senders = new Set([...candidates, ...replaced.values()].map(({ senderNid }) => senderNid))
      const found = await findErasedUsers(db, [...senders])
      if (found.length === 0) return candidates
      const positions = new Map(found.map(({ user_nid, erased_pos }) => [user_nid, erased_pos ?? 0]))
      return veilBy(positions, replaced, { room, candidates, wasInRoom })
    },
  }
}

/** State that these events replaced and repeat, by number. */
async function replacedBy(
  events: Pick<EventCache, 'load'>,
  candidates: readonly RoomEvent[],
): Promise<ReadonlyMap<number, RoomEvent>> {
  const nids = candidates.flatMap(({ replacesNid }) => replacesNid ?? [])
  return nids.length === 0 ? new Map() : events.load(nids)
}

/** @param positions of erased users, among whom are all that sent one of these events */
async function veilBy(
  positions: ReadonlyMap<number, number>,
  replaced: ReadonlyMap<number, RoomEvent>,
  { room, candidates, wasInRoom }: { room: Room; candidates: readonly RoomEvent[]; wasInRoom: WasInRoom },
): Promise<readonly RoomEvent[]> {
  const isErased = ({ senderNid }: RoomEvent): boolean => positions.has(senderNid)
  if (!candidates.some(isErased) && ![...replaced.values()].some(isErased)) return candidates
  const wasThere = await wasInRoom()
  const isVeiled = (event: RoomEvent | undefined): boolean => {
    const position = event && positions.get(event.senderNid)
    return position !== undefined && !wasThere(event!, position)
  }
  return candidates.map((event) => {
    if (isVeiled(event)) return copyOf(event, encodeCanonical(redact(room.version, event.pdu)))
    const before = event.replacesNid === undefined ? undefined : replaced.get(event.replacesNid)
    return isVeiled(before) ? copyOf(event, event.json) : event
  })
}

/** A copy of an event for one reader, without the content of the state that it replaced. */
function copyOf(event: RoomEvent, json: string): RoomEvent {
  return new RoomEvent({ ...event.toRow(), replaces_nid: null, json }, undefined, true)
}
