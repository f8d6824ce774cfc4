import { isObject, type JsonObject, type JsonValue } from '../../core/json.ts'
import { MAX_STRIPPED_STATE, MAX_STRIPPED_STATE_CHARS } from '../limits.ts'

/** What another server shows of a room to somebody who is not in it: as much as makes sense. Nothing is decided by it. */
export function strippedStateIn(given: JsonValue | undefined): JsonObject[] {
  const events = (Array.isArray(given) ? given : []).slice(0, MAX_STRIPPED_STATE).filter(isObject)
  const stripped = events.flatMap(({ type, state_key, sender, content }) =>
    typeof type === 'string' && typeof state_key === 'string' && typeof sender === 'string' && isObject(content)
      ? [{ type, state_key, sender, content }]
      : [],
  )
  return JSON.stringify(stripped).length <= MAX_STRIPPED_STATE_CHARS ? stripped : []
}
