import { ProtocolError } from '../core/errors.ts'
import type { Filter, RoomEventFilter } from '../core/filter.ts'
import { type FilterReading, readFilter, readRoomEventFilter } from '../core/filter-reader.ts'
import { JsonTooDeepError, type JsonValue, NotJsonError, readJson } from '../core/json.ts'

function parse(text: string): JsonValue {
  try {
    return readJson(text).value
  } catch (error) {
    if (!(error instanceof NotJsonError || error instanceof JsonTooDeepError)) throw error
    throw new ProtocolError('M_INVALID_PARAM', "Query parameter 'filter' is not JSON.")
  }
}

function accepted<T>(reading: FilterReading<T>): T {
  if (reading.allowed) return reading.filter
  throw new ProtocolError('M_INVALID_PARAM', reading.reason)
}

/** A filter written into the query of `sync`. @throws ProtocolError `M_INVALID_PARAM` */
export function parseFilter(text: string): Filter {
  return accepted(readFilter(parse(text)))
}

/** A filter written into the query of `messages` or `context`. @throws ProtocolError `M_INVALID_PARAM` */
export function parseRoomEventFilter(text: string): RoomEventFilter {
  return accepted(readRoomEventFilter(parse(text)))
}
