import type { JsonObject } from '../../core/json.ts'
import { parseExact } from '../../core/large-integers.ts'
import type { DelayedEventRow } from '../../store/rooms/delayed-events.ts'

/** A delayed event as its user reads it. The last line holds the names of earlier drafts, which clients still read. */
export function describeDelayedEvent(row: DelayedEventRow): JsonObject {
  return {
    delay_id: row.delay_id,
    room_id: row.room_id,
    type: row.type,
    ...(row.state_key !== null && { state_key: row.state_key }),
    delay_ms: row.delay_ms,
    scheduled_at: row.scheduled_at,
    content: parseExact(row.content),
    ...(row.finalised_at !== null && { finalised_ts: row.finalised_at, ...outcomeOf(row) }),
    ...{ delay: row.delay_ms, running_since: row.scheduled_at },
  }
}

function outcomeOf({ event_id, error }: DelayedEventRow): JsonObject {
  return { ...(event_id !== null && { event_id }), ...(error !== null && { error: parseExact(error) }) }
}
