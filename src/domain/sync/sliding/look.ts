import { type CompiledFilter, compileFilter } from '../../../core/filter.ts'
import { MAX_SLIDING_TIMELINE } from '../../limits/sliding-sync.ts'
import type { Look } from '../look.ts'
import type { StreamPosition } from '../token.ts'
import type { SlidingPosition } from './position.ts'
import type { SentRoom, SlidingRecord } from './record.ts'
import type { Asked, SlidingRequest } from './request.ts'
import type { SlidingSources } from './sources.ts'

/** One pass over everything between the positions of a connection. */
export interface SlidingLook extends Look {
  readonly own: SlidingSources
  readonly sliding: Asked
  /** Undefined at the beginning of a connection. */
  readonly from: SlidingPosition | undefined
  /** What the client was sent up to there. */
  readonly record: SlidingRecord
  /** The rooms of the user's direct chats, by id. */
  readonly direct: ReadonlySet<string>
  /** Stands for the connection among all, with its lineage. */
  readonly connection: string
}

const BASE = compileFilter({ room: { timeline: {}, state: { lazy_load_members: true } } })

/** By the number of events. There are no more than answers may hold of a room. */
const FILTERS = Array.from({ length: MAX_SLIDING_TIMELINE + 1 }, (_, limit): CompiledFilter => {
  return { ...BASE, room: { ...BASE.room, timeline: { ...BASE.room.timeline, limit } } }
})

/** The filter of classic sync that wants so many events of a room, and members lazily. */
const filterFor = (limit: number): CompiledFilter => FILTERS[limit]!

/** The look of classic sync at one room, from where the client was sent it. */
export function roomLook(look: SlidingLook, since: StreamPosition | undefined, timelineLimit: number): SlidingLook {
  return { ...look, since, request: { ...look.request, filter: filterFor(timelineLimit) } }
}

/** The position up to which the client was sent a room; undefined if it was not. */
export function sentUpTo({ from }: SlidingLook, sent: SentRoom | undefined): StreamPosition | undefined {
  if (sent === undefined || from === undefined) return undefined
  return sent.upTo ? { ...from.stream, ...sent.upTo } : from.stream
}

/** What classic sync's parts need of a request. */
export function classicRequest({ pos, timeoutMs, presence, signal }: SlidingRequest): Look['request'] {
  const filter = filterFor(0)
  return { since: pos, filter, fullState: false, timeoutMs, stateAfter: 'state_after', presence, signal }
}
