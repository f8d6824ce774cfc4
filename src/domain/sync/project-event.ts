import { projectFields } from '../../core/event-fields.ts'
import type { JsonObject } from '../../core/json.ts'
import { JsonBytes } from '../../core/json-bytes.ts'
import { parseExact } from '../../core/large-integers.ts'
import { type Reading, writeClientEvent } from '../rooms/room/client-event.ts'
import type { RoomEvent } from '../rooms/room/room-event.ts'
import type { Look } from './look.ts'

/** An event in the federation format, or reduced to the fields that a filter names. */
export function projectEvent(event: RoomEvent, look: Look, reading: Reading): JsonObject {
  const { eventFields, eventFormat } = look.request.filter
  if (eventFormat === 'federation') return { ...event.pdu, event_id: event.id }
  const out = new JsonBytes()
  writeClientEvent(out, event, reading)
  const client = parseExact(out.toBuffer().toString('utf8')) as JsonObject
  return eventFields === undefined ? client : projectFields(client, eventFields)
}
