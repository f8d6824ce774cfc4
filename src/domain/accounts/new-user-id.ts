import { ProtocolError } from '../../core/errors.ts'
import { isNewLocalpart, type ServerName, type UserId, userId } from '../../core/ids.ts'
import type { Random } from '../clock.ts'

const CHOSEN_NAME_BYTES = 8

/**
 * The id of a new user with this name. Phone keyboards capitalise names, so capitals become lower case.
 * @throws ProtocolError `M_INVALID_USERNAME`
 */
export function newUserId(username: string, server: ServerName): UserId {
  const localpart = username.toLowerCase()
  if (isNewLocalpart(localpart, server)) return userId(localpart, server)
  const error = 'A user name may hold the letters a to z, digits and . _ = - / + only, and not be too long.'
  throw new ProtocolError('M_INVALID_USERNAME', error)
}

/** A random name that nobody has. */
export function chosenName(prefix: string, random: Random): string {
  return prefix + random.bytes(CHOSEN_NAME_BYTES).toString('hex')
}
