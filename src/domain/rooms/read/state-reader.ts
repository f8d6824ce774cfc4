import { ProtocolError } from '../../../core/errors.ts'
import type { RoomId } from '../../../core/ids.ts'
import { JsonBytes } from '../../../core/json-bytes.ts'
import type { Reader } from '../../../store/db/db.ts'
import type { Requester } from '../../accounts/requester.ts'
import type { Clock } from '../../clock.ts'
import { loadReferences, writeClientEvent } from '../room/client-event.ts'
import type { EventCache } from '../room/event-cache.ts'
import { keysAt, stateAt, stateNids } from '../room/past-state.ts'
import type { Readable } from '../room/room-access.ts'
import type { RoomEvent } from '../room/room-event.ts'
import { readingOf } from './event-lists.ts'
import { createEventParts } from './event-parts.ts'
import { readWholeState, type WholeStateParts } from './whole-state.ts'

/** The state of rooms: the current state, or for users who left, the state when they left. */
export interface StateReader {
  /** The whole state, as a JSON array. */
  state(by: Requester, roomId: RoomId): Promise<JsonBytes>
  /** One state event, or its content alone. @throws ProtocolError `M_NOT_FOUND` */
  stateEvent(
    by: Requester,
    roomId: RoomId,
    type: string,
    stateKey: string,
    format: 'content' | 'event',
  ): Promise<JsonBytes>
}

export interface StateReaderParts extends WholeStateParts {
  readonly db: Reader
  readonly events: EventCache
  readonly clock: Clock
}

export function createStateReader(parts: StateReaderParts): StateReader {
  const { db, events, access, clock } = parts
  const eventParts = createEventParts(parts)

  async function oneOf({ room, departure }: Readable, type: string, stateKey: string): Promise<RoomEvent | undefined> {
    if (!departure) return room.stateEvent(type, stateKey)
    const keyId = room.keys.idOf(type, stateKey)
    const nids = keyId === undefined ? [] : await keysAt(db, room, departure.pointAfter, [keyId])
    return [...(await events.load(nids)).values()][0]
  }

  return {
    async state(by, roomId) {
      const { room, departure } = await readWholeState(parts, by, roomId)
      const state = departure ? await stateAt(db, room, departure.pointAfter) : room.committed.state
      return eventParts.write(new JsonBytes(), stateNids(state), readingOf(by, roomId, clock))
    },

    async stateEvent(by, roomId, type, stateKey, format) {
      const known = await oneOf(await access.mustReadState(by, roomId), type, stateKey)
      const isToCome = known === undefined && type === 'm.room.member'
      const event = isToCome ? await oneOf(await readWholeState(parts, by, roomId), type, stateKey) : known
      if (!event) throw new ProtocolError('M_NOT_FOUND', 'The room has no such state.')
      if (format === 'content') return new JsonBytes().value(event.content)
      await loadReferences(events, [event])
      const out = new JsonBytes()
      writeClientEvent(out, event, readingOf(by, roomId, clock))
      return out
    },
  }
}
