import { isObject, type JsonObject, type JsonValue } from '../json.ts'
import type { Kept, RoomVersion } from '../room-version.ts'
import type { Pdu } from './format.ts'

/**
 * What is left of an event once it is redacted, which is also what its signatures and its id cover
 * (server-server API, "Redactions"; the kept keys are in the room-version table).
 */
export function redact(version: RoomVersion, pdu: Pdu): Pdu {
  const redacted: JsonObject = {}
  for (const key of version.redaction.topLevel) {
    if (Object.hasOwn(pdu, key)) redacted[key] = pdu[key]!
  }
  redacted.content = redactContent(version, pdu.type, pdu.content)
  return redacted as Pdu
}

/** What redaction leaves of the content of an event of this type. */
export function redactContent(version: RoomVersion, type: string, content: JsonObject): JsonObject {
  const kept = Object.hasOwn(version.redaction.content, type) ? version.redaction.content[type] : undefined
  return kept === undefined ? {} : (keep(content, kept) as JsonObject)
}

function keep(value: JsonValue, kept: Kept): JsonValue | undefined {
  if (kept === true) return value
  if (!isObject(value)) return undefined
  const left: JsonObject = {}
  for (const [key, keptBelow] of Object.entries(kept)) {
    const below = Object.hasOwn(value, key) ? keep(value[key]!, keptBelow) : undefined
    if (below !== undefined) left[key] = below
  }
  return left
}
