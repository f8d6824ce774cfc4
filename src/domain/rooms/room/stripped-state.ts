import { isObject, type JsonObject, type JsonValue } from '../../../core/json.ts'
import { writeJson } from '../../../core/large-integers.ts'
import { MAX_STRIPPED_STATE, MAX_STRIPPED_STATE_BYTES } from '../../limits.ts'

/** What a room shows to somebody who is not in it (client-server API, "Stripped state"), first what it is recognised by. */
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

/** What another server shows of a room to somebody who is not in it: as much as makes sense, and fits. Nothing is decided by it. */
export function strippedStateIn(given: JsonValue | undefined, doesNotFit = () => {}): JsonObject[] {
  const events = (Array.isArray(given) ? given : []).slice(0, MAX_STRIPPED_STATE).filter(isObject)
  const stripped = events.flatMap(({ type, state_key, sender, content }) =>
    typeof type === 'string' && typeof state_key === 'string' && typeof sender === 'string' && isObject(content)
      ? [{ type, state_key, sender, content }]
      : [],
  )
  return withinBounds(stripped, doesNotFit)
}

/** Those of the types that are shown, in this order, as long as they fit: one that is too large is passed over. */
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
