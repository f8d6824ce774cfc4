import { ProtocolError } from '../../core/errors.ts'
import { isObject, type JsonObject } from '../../core/json.ts'
import { MAX_TAG_BYTES } from '../limits/tags.ts'

/** The tags in the content of `m.tag`, by name; none if it has another form (client-server API, "Room Tagging"). */
export function tagsIn(content: JsonObject | undefined): JsonObject {
  return isObject(content?.tags) ? content.tags : {}
}

/** @throws ProtocolError `M_INVALID_PARAM` for a name that is too long, and for an `order` that is no number from 0 to 1 */
export function checkTag(name: string, { order }: JsonObject): void {
  if (name === '' || Buffer.byteLength(name) > MAX_TAG_BYTES) {
    throw new ProtocolError('M_INVALID_PARAM', `The name of a tag has 1 to ${MAX_TAG_BYTES} bytes.`)
  }
  if (order === undefined || (typeof order === 'number' && order >= 0 && order <= 1)) return
  throw new ProtocolError('M_INVALID_PARAM', "The 'order' of a tag is a number from 0 to 1.")
}
