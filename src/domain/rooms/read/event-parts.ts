import { JsonBytes } from '../../../core/json-bytes.ts'
import { MAX_ANSWER_PART_BYTES } from '../../limits.ts'
import { loadReferences, type Reading, writeClientEvent } from '../room/client-event.ts'
import type { EventCache } from '../room/event-cache.ts'
import type { RoomEvent } from '../room/room-event.ts'

/** Writes lists of events that may be too large to hold at once: the rest of a large one is loaded while it is sent. */
export interface EventParts {
  /** A JSON array of those of these events that are wanted; the first of them in the order of the timeline. */
  write(
    out: JsonBytes,
    nids: readonly number[],
    reading: Reading,
    wants?: (event: RoomEvent) => boolean,
  ): Promise<JsonBytes>
}

export function createEventParts({ events }: { readonly events: EventCache }): EventParts {
  async function partOf(some: readonly RoomEvent[], reading: Reading): Promise<JsonBytes> {
    await loadReferences(events, some)
    const part = new JsonBytes()
    some.forEach((event, index) => {
      if (index > 0) part.text(',')
      writeClientEvent(part, event, reading)
    })
    return part
  }

  /** @param isFirst whether nothing stands before them */
  async function* otherParts(
    nids: readonly number[],
    reading: Reading,
    wants: (event: RoomEvent) => boolean,
    isFirst: boolean,
  ): AsyncGenerator<JsonBytes> {
    let isEmpty = isFirst
    for (let wanted = nids; wanted.length > 0; ) {
      const { found, left } = await events.loadLarge(wanted, MAX_ANSWER_PART_BYTES)
      wanted = left
      const shown = found.filter(wants)
      if (shown.length === 0) continue
      yield new JsonBytes().text(isEmpty ? '' : ',').append(await partOf(shown, reading))
      isEmpty = false
    }
  }

  return {
    async write(out, nids, reading, wants = () => true) {
      const { found, left } = await events.loadWithin(nids, MAX_ANSWER_PART_BYTES)
      const first = found.filter(wants).toSorted((a, b) => a.pos - b.pos)
      out.text('[').append(await partOf(first, reading))
      if (left.length > 0) out.later(() => otherParts(left, reading, wants, first.length === 0))
      return out.text(']')
    },
  }
}
