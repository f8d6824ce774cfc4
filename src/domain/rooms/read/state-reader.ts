import { ProtocolError } from '../../../core/errors.ts'
import type { RoomId } from '../../../core/ids.ts'
import { JsonBytes } from '../../../core/json-bytes.ts'
import type { Reader } from '../../../store/db/db.ts'
import type { Requester } from '../../accounts/requester.ts'
import type { Clock } from '../../clock.ts'
import { MAX_ANSWER_PART_BYTES } from '../../limits.ts'
import { loadReferences, type Reading, writeClientEvent } from '../room/client-event.ts'
import type { EventCache } from '../room/event-cache.ts'
import { keysAt, stateAt, stateNids } from '../room/past-state.ts'
import type { Readable } from '../room/room-access.ts'
import type { RoomEvent } from '../room/room-event.ts'
import { readingOf } from './event-lists.ts'
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

  async function oneOf({ room, departure }: Readable, type: string, stateKey: string): Promise<RoomEvent | undefined> {
    if (!departure) return room.stateEvent(type, stateKey)
    const keyId = room.keys.idOf(type, stateKey)
    const nids = keyId === undefined ? [] : await keysAt(db, room, departure.pointAfter, [keyId])
    return [...(await events.load(nids)).values()][0]
  }

  async function eventPart(some: readonly RoomEvent[], reading: Reading): Promise<JsonBytes> {
    await loadReferences(events, some)
    const part = new JsonBytes()
    some.forEach((event, index) => {
      if (index > 0) part.text(',')
      writeClientEvent(part, event, reading)
    })
    return part
  }

  /** A state that is too large to hold at once is loaded while it is sent. */
  async function* otherParts(nids: readonly number[], reading: Reading): AsyncGenerator<JsonBytes> {
    for (let wanted = nids; wanted.length > 0; ) {
      const { found, left } = await events.loadLarge(wanted, MAX_ANSWER_PART_BYTES)
      wanted = left
      if (found.length > 0) yield new JsonBytes().text(',').append(await eventPart(found, reading))
    }
  }

  return {
    async state(by, roomId) {
      const { room, departure } = await readWholeState(parts, by, roomId)
      const state = departure ? await stateAt(db, room, departure.pointAfter) : room.committed.state
      const { found, left } = await events.loadWithin(stateNids(state), MAX_ANSWER_PART_BYTES)
      const reading = readingOf(by, roomId, clock)
      const first = await eventPart(
        found.toSorted((a, b) => a.pos - b.pos),
        reading,
      )
      const out = new JsonBytes().text('[').append(first)
      if (left.length > 0) out.later(() => otherParts(left, reading))
      return out.text(']')
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
