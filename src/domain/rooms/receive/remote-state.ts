import type { EventId } from '../../../core/ids.ts'
import { forEachState, getState, type StateMap, setState } from '../../../core/state/trie.ts'
import type { Database } from '../../../store/db/db.ts'
import { getStateParts, type StatePart } from '../../../store/events/gaps.ts'
import type { Room } from '../room/room.ts'

/** The events that this server does not have. */
export async function unknownOf(db: Database, room: Room, eventIds: readonly EventId[]): Promise<EventId[]> {
  const known = await partsOf(db, room, eventIds)
  return eventIds.filter((id) => !known.has(id))
}

/**
 * The state that another server claims, as changes to a similar state. Undefined when an event is missing, two have the same key, or it has
 * another create event.
 */
export async function stateLike(
  db: Database,
  room: Room,
  near: StateMap,
  claimed: readonly EventId[],
): Promise<StateMap | undefined> {
  const parts = await partsOf(db, room, claimed)
  const values = new Map<number, number>()
  for (const id of new Set(claimed)) {
    const part = parts.get(id)
    if (part?.room_nid !== room.nid) return undefined
    if (part.standing === 'rejected' || part.key_id === null) continue
    if (values.has(part.key_id)) return undefined
    values.set(part.key_id, part.event_nid)
  }
  const createKey = room.keys.idOf('m.room.create', '')
  if (createKey === undefined || values.get(createKey) !== getState(room.pending.state, createKey)) return undefined
  let state = near
  forEachState(near, (keyId) => {
    if (!values.has(keyId)) state = setState(state, keyId, 0)
  })
  for (const [keyId, nid] of values) if (getState(near, keyId) !== nid) state = setState(state, keyId, nid)
  return state
}

async function partsOf(db: Database, room: Room, eventIds: readonly EventId[]): Promise<Map<EventId, StatePart>> {
  const parts = new Map<EventId, StatePart>()
  const stored: EventId[] = []
  for (const id of new Set(eventIds)) {
    const event = room.unsettled(id)
    if (!event) stored.push(id)
    else {
      const { nid, roomNid, keyId, standing } = event
      parts.set(id, {
        ...{ event_id: id, event_nid: nid, room_nid: roomNid, key_id: keyId ?? null, standing: standing ?? null },
      })
    }
  }
  for (const part of await getStateParts({ query: db.scan }, stored)) parts.set(part.event_id, part)
  return parts
}
