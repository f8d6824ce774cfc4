import type { RoomId } from '../../../core/ids.ts'
import { JsonBytes } from '../../../core/json-bytes.ts'
import type { Requester } from '../../accounts/requester.ts'
import type { Clock } from '../../clock.ts'
import { MAX_INITIAL_MESSAGES } from '../../limits/peeking.ts'
import { writeClientEvent } from '../room/client-event.ts'
import type { EventCache } from '../room/event-cache.ts'
import { encodePosition } from '../room/position-token.ts'
import type { Readable, RoomAccess } from '../room/room-access.ts'
import type { RoomEvent } from '../room/room-event.ts'
import type { BundleAggregations } from './bundles.ts'
import { writeEventList } from './event-lists.ts'
import { createFullReading } from './full-reading.ts'
import type { Positions } from './positions.ts'
import { BEGINNING, type Timeline } from './timeline.ts'

/** The newest events of a room, for members, former members, and all if it is world readable. */
export interface RecentReader {
  /** A room that is previewed. @throws ProtocolError `M_FORBIDDEN`, also for who is merely invited */
  mustPreview(by: Requester, roomId: RoomId): Promise<Readable>
  /** The newest events, the oldest of them first: `{chunk, start, end}`. @param end the token for what comes after them */
  latest(by: Requester, readable: Readable, limit: number, end: string): Promise<JsonBytes>
  /** Up to `limit` events after a token, in order. @throws ProtocolError `M_INVALID_PARAM` */
  after(by: Requester, readable: Readable, token: string, limit: number): Promise<readonly RoomEvent[]>
  /** Writes events of a room as its client sees them, each with its room's id. */
  write(by: Requester, room: Readable['room'], events: readonly RoomEvent[]): Promise<readonly JsonBytes[]>
}

/** One page searches a limited number of events for those that the reader may see. */
const MAX_PAGES = 5

export function createRecentReader(parts: {
  readonly events: EventCache
  readonly access: RoomAccess
  readonly clock: Clock
  readonly timeline: Timeline
  readonly positions: Positions
  readonly bundle: BundleAggregations
}): RecentReader {
  const { access, timeline, positions } = parts
  const readingWith = createFullReading(parts)

  return {
    mustPreview: access.mustReadState,

    async latest(by, { room, upTo }, limit, end) {
      const count = Math.min(limit, MAX_INITIAL_MESSAGES)
      const page = await timeline.page(by, { room, direction: 'b', after: BEGINNING, upTo }, count, () => true)
      const shown = page.events.toReversed()
      const out = new JsonBytes().text('{').key('chunk', true)
      writeEventList(out, shown, await readingWith(by, room, shown, upTo))
      out.key('start').value(encodePosition(page.next ?? (shown[0]?.pos ?? upTo + 1) - 1))
      return out.key('end').value(end).text('}')
    },

    async after(by, { room, upTo }, token, limit) {
      let after: number | undefined = await positions.positionOf(token, room)
      const found: RoomEvent[] = []
      for (let pages = 0; after !== undefined && after < upTo && found.length < limit && pages < MAX_PAGES; pages++) {
        const stretch = { room, direction: 'f', after, upTo } as const
        const page = await timeline.page(by, stretch, limit - found.length, () => true)
        found.push(...page.events)
        after = page.next
      }
      return found
    },

    async write(by, room, shown) {
      const reading = await readingWith(by, room, shown)
      return shown.map((event) => {
        const out = new JsonBytes()
        writeClientEvent(out, event, reading)
        return out
      })
    },
  }
}
