import type { RoomId } from '../../../core/ids.ts'
import type { JsonBytes } from '../../../core/json-bytes.ts'
import type { Requester } from '../../accounts/requester.ts'
import type { Clock } from '../../clock.ts'
import { type Reading, writeClientEvent } from '../room/client-event.ts'
import type { RoomEvent } from '../room/room-event.ts'

/** How one client reads one room, now. */
export function readingOf(
  by: Pick<Requester, 'tokenNid' | 'earlierTokens' | 'userNid'>,
  roomId: RoomId,
  clock: Clock,
): Reading {
  return { now: clock.now(), tokenNid: by.tokenNid, earlierTokens: by.earlierTokens, userNid: by.userNid, roomId }
}

/** Writes events as a JSON array. What they refer to must be loaded already: see `loadReferences`. */
export function writeEventList(out: JsonBytes, events: readonly RoomEvent[], reading: Reading): void {
  out.text('[')
  for (const [index, event] of events.entries()) {
    if (index > 0) out.text(',')
    writeClientEvent(out, event, reading)
  }
  out.text(']')
}
