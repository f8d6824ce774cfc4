import { ProtocolError } from '../core/errors.ts'
import type { RoomEventFilter } from '../core/filter.ts'
import { readRoomEventFilter } from '../core/filter-reader.ts'
import { JsonTooDeepError, type JsonValue, NotJsonError, readJson } from '../core/json.ts'

function parse(text: string): JsonValue {
  try {
    return readJson(text).value
  } catch (error) {
    if (!(error instanceof NotJsonError || error instanceof JsonTooDeepError)) throw error
    throw new ProtocolError('M_INVALID_PARAM', "Query parameter 'filter' is not JSON.")
  }
}

/** A filter written into the query of `messages` or `context`. @throws ProtocolError `M_INVALID_PARAM` */
export function parseRoomEventFilter(text: string): RoomEventFilter {
  const reading = readRoomEventFilter(parse(text))
  if (!reading.allowed) throw new ProtocolError('M_INVALID_PARAM', reading.reason)
  return reading.filter
}
