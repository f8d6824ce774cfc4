import { ProtocolError } from '../../../core/errors.ts'
import { compileEventFilter, type EventMatcher, MATCH_ALL } from '../../../core/filter.ts'
import { readRoomEventFilter } from '../../../core/filter-reader.ts'
import { type JsonValue, readJson } from '../../../core/json.ts'

/** The `filter` parameter of a reader: a RoomEventFilter as JSON. @throws ProtocolError `M_INVALID_PARAM` or `M_BAD_JSON` */
export function roomEventFilterOf(text: string | undefined): EventMatcher {
  if (text === undefined || text === '') return MATCH_ALL
  const reading = readRoomEventFilter(parse(text))
  if (!reading.allowed) throw new ProtocolError(reading.errcode ?? 'M_BAD_JSON', reading.reason)
  return compileEventFilter(reading.filter)
}

function parse(text: string): JsonValue {
  try {
    return readJson(text).value
  } catch {
    throw new ProtocolError('M_INVALID_PARAM', '`filter` is not JSON.')
  }
}
