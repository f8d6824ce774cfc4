import type { JsonValue } from '../json.ts'
import type { MaybeEvent } from './content.ts'

/** How long a room wants its messages to be kept, in milliseconds (MSC1763). */
export interface Retention {
  /** At least for this long. */
  readonly min: number | undefined
  /** No longer than this. */
  readonly max: number | undefined
}

/** What a server says about it, in milliseconds. */
export interface RetentionBounds {
  /** For rooms that say nothing; undefined: for ever. */
  readonly byDefault: number | undefined
  /** No room has its messages removed before this time. */
  readonly shortest: number
  /** No room that says something has them kept for longer than this. */
  readonly longest: number
}

/** What `m.room.retention` says. A lifetime of a wrong shape counts as absent, and so do both where the longest is under the least. */
export function retentionOf(setting: MaybeEvent): Retention {
  const min = lifetimeIn(setting?.content.min_lifetime)
  const max = lifetimeIn(setting?.content.max_lifetime)
  return min !== undefined && max !== undefined && max < min ? NONE : { min, max }
}

const NONE: Retention = { min: undefined, max: undefined }

function lifetimeIn(value: JsonValue | undefined): number | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined
}

/** How long messages of a room are kept here; undefined: for ever. */
export function lifetimeOf({ min = 0, max }: Retention, { byDefault, shortest, longest }: RetentionBounds) {
  const wanted = max ?? byDefault
  if (wanted === undefined) return undefined
  // The room's own wish counts within what the server allows, the server's where the room has none.
  const least = Math.max(shortest, Math.min(min, longest))
  return Math.max(least, max === undefined ? wanted : Math.min(wanted, longest))
}
