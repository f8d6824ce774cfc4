import { isObject, type JsonObject, type JsonValue } from '../json.ts'
import type { Kept, RoomVersion } from '../room-version.ts'
import type { Pdu } from './format.ts'

/**
 * The redacted form of an event, which is also what its signatures and its id cover
 * (server-server API, "Redactions"; the table of room versions has the kept keys).
 */
export function redact(version: RoomVersion, pdu: Pdu): Pdu {
  const redacted: JsonObject = {}
  for (const key of version.redaction.topLevel) {
    if (Object.hasOwn(pdu, key)) redacted[key] = pdu[key]!
  }
  redacted.content = redactContent(version, pdu.type, pdu.content)
  return redacted as Pdu
}

/** The redacted content of an event of this type. */
export function redactContent(version: RoomVersion, type: string, content: JsonObject): JsonObject {
  const kept = Object.hasOwn(version.redaction.content, type) ? version.redaction.content[type] : undefined
  return kept === undefined ? {} : (keep(content, kept) as JsonObject)
}

/** Content that the authorisation rules read, but that redaction does not keep in every version. */
const READ_BY_RULES: { readonly [type: string]: Kept } = {
  'm.room.create': { 'm.federate': true, room_version: true, creator: true, additional_creators: true },
  'm.room.join_rules': { allow: true },
  'm.room.member': { third_party_invite: { signed: true }, join_authorised_via_users_server: true },
  'm.room.power_levels': { invite: true, notifications: true },
  'm.room.third_party_invite': { public_key: true, public_keys: true },
}

/**
 * The content that authorisation still reads from a redacted event. Without it, servers that got the redaction earlier would authorise
 * later events differently from others. Undefined if redaction keeps all of it.
 */
export function contentForRules(version: RoomVersion, type: string, content: JsonObject): JsonObject | undefined {
  const read = Object.hasOwn(READ_BY_RULES, type) ? keep(content, READ_BY_RULES[type]!) : undefined
  if (!isObject(read)) return undefined
  const left = redactContent(version, type, content)
  return Object.keys(read).every((key) => Object.hasOwn(left, key)) ? undefined : { ...left, ...read }
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
