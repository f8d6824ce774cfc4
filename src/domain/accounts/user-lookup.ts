import { ProtocolError } from '../../core/errors.ts'
import { isUserId, type ServerName, serverOf, type UserId, userId } from '../../core/ids.ts'
import { isObject, type JsonObject } from '../../core/json.ts'

/**
 * The user that a login or a password stage is about: the `identifier` object, or the `user` key of older clients.
 *
 * Gives the ids to try in their order: names are kept in lower case, but people also type capitals.
 * @throws ProtocolError `M_MISSING_PARAM`, `M_BAD_JSON`, `M_UNKNOWN` for a kind of identifier that is not served
 */
export function identifiedUsers(request: JsonObject, server: ServerName): UserId[] {
  const name = nameIn(request)
  const exact = isUserId(name) ? name : userId(name.startsWith('@') ? name.slice(1) : name, server)
  if (!isUserId(exact) || serverOf(exact) !== server) return []
  const lower = exact.toLowerCase() as UserId
  return lower === exact ? [exact] : [exact, lower]
}

function nameIn(request: JsonObject): string {
  const { identifier, user } = request
  if (identifier === undefined) {
    if (typeof user !== 'string') throw new ProtocolError('M_MISSING_PARAM', "Key 'identifier' is missing.")
    return user
  }
  if (!isObject(identifier)) throw new ProtocolError('M_BAD_JSON', "Key 'identifier' must be an object.")
  if (identifier.type !== 'm.id.user') {
    const error = "This server knows users by identifiers of type 'm.id.user' only."
    throw new ProtocolError('M_UNKNOWN', error, { status: 400 })
  }
  if (typeof identifier.user !== 'string') {
    throw new ProtocolError('M_MISSING_PARAM', "Key 'identifier.user' is missing.")
  }
  return identifier.user
}
