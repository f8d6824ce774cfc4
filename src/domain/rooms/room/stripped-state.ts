import { isObject, type JsonObject, type JsonValue } from '../../../core/json.ts'
import { writeJson } from '../../../core/large-integers.ts'
import { MAX_STRIPPED_STATE, MAX_STRIPPED_STATE_BYTES } from '../../limits.ts'

/** The state that a room shows to a user who is not in it (client-server API, "Stripped state"), the most important types first. */
const SHOWN_TYPES = [
  'm.room.create',
  'm.room.join_rules',
  'm.room.encryption',
  'm.room.name',
  'm.room.canonical_alias',
  'm.room.member',
  'm.room.avatar',
  'm.room.topic',
]

/** Reads the stripped state that another server sent. Keeps what is well-formed and fits the limits. No decision depends on it. */
export function strippedStateIn(given: JsonValue | undefined, doesNotFit = () => {}): JsonObject[] {
  const events = (Array.isArray(given) ? given : []).slice(0, MAX_STRIPPED_STATE).filter(isObject)
  const stripped = events.flatMap(({ type, state_key, sender, content }) =>
    typeof type === 'string' && typeof state_key === 'string' && typeof sender === 'string' && isObject(content)
      ? [{ type, state_key, sender, content }]
      : [],
  )
  return withinBounds(stripped, doesNotFit)
}

/** The events of the listed types, in the order of the list, as long as they fit. An event that is too large is skipped. */
export function withinBounds<Shown extends { readonly type: string }>(
  events: readonly Shown[],
  doesNotFit = () => {},
): Shown[] {
  let left = MAX_STRIPPED_STATE_BYTES
  return SHOWN_TYPES.flatMap((shown) => events.filter(({ type }) => type === shown)).filter((event) => {
    const bytes = Buffer.byteLength(writeJson(event))
    if (bytes > left) {
      doesNotFit()
      return false
    }
    left -= bytes
    return true
  })
}
