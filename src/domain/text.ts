import { ProtocolError } from '../core/errors.ts'
import { isWellFormed } from '../core/json.ts'

/**
 * Checks a text that a person chose and that is stored as it is.
 * @throws ProtocolError `M_INVALID_PARAM` if it is longer than `max` or holds a NUL or half of a character, which Postgres cannot store.
 */
export function checkText(name: string, value: string, max: number): void {
  if (value.length > max) throw new ProtocolError('M_INVALID_PARAM', `'${name}' is longer than ${max} characters.`)
  if (value.includes('\0')) throw new ProtocolError('M_INVALID_PARAM', `'${name}' holds a NUL character.`)
  if (!isWellFormed(value))
    throw new ProtocolError('M_INVALID_PARAM', `'${name}' holds half of a character: a lone surrogate.`)
}
