import { ProtocolError } from '../../core/errors.ts'
import { isUserId, type ServerName, serverOf, type UserId, userId } from '../../core/ids.ts'
import { isObject, type JsonObject, type JsonValue } from '../../core/json.ts'
import { isMedium, type Medium, normaliseAddress } from '../../core/threepid.ts'
import { readPhoneNumber } from '../identity/phone-numbers.ts'

/** The user of a login or a password stage: by ids, to be tried in order, or by an address of the account. */
export type Identified =
  | { readonly kind: 'user'; readonly ids: readonly UserId[] }
  | { readonly kind: 'threepid'; readonly medium: Medium; readonly address: string }

/**
 * Reads the `identifier` object (client-server API, "Identifier types": `m.id.user`, `m.id.thirdparty`, `m.id.phone`), or the `user`,
 * `medium` and `address` keys of older clients. A well-formed identifier of nobody is no error: it must take as long as any other.
 * @throws ProtocolError `M_MISSING_PARAM`, `M_BAD_JSON`, `M_UNKNOWN` for an identifier type that is not supported
 */
export async function identifiedBy(request: JsonObject, server: ServerName): Promise<Identified> {
  const { identifier } = request
  if (identifier === undefined) return identifiedByOldKeys(request, server)
  if (!isObject(identifier)) throw new ProtocolError('M_BAD_JSON', "Key 'identifier' must be an object.")
  switch (identifier.type) {
    case 'm.id.user':
      return byName(required(identifier, 'user'), server)
    case 'm.id.thirdparty':
      return byAddress(required(identifier, 'medium'), required(identifier, 'address'))
    case 'm.id.phone':
      // An earlier draft of the specification called the key `number`.
      return byPhone(required(identifier, 'country'), required(identifier, 'phone' in identifier ? 'phone' : 'number'))
    default: {
      const error = "This server knows identifiers of the types 'm.id.user', 'm.id.thirdparty' and 'm.id.phone'."
      throw new ProtocolError('M_UNKNOWN', error, { status: 400 })
    }
  }
}

function identifiedByOldKeys(request: JsonObject, server: ServerName): Identified {
  const { user, medium, address } = request
  if (user === undefined && typeof medium === 'string' && typeof address === 'string') return byAddress(medium, address)
  if (typeof user === 'string') return byName(user, server)
  throw new ProtocolError('M_MISSING_PARAM', "Key 'identifier' is missing.")
}

function required(identifier: JsonObject, key: string): string {
  const value: JsonValue | undefined = identifier[key]
  if (typeof value === 'string') return value
  const [errcode, what] =
    value === undefined ? (['M_MISSING_PARAM', 'is missing'] as const) : (['M_BAD_JSON', 'must be a string'] as const)
  throw new ProtocolError(errcode, `Key 'identifier.${key}' ${what}.`)
}

/** Names are kept in lower case, but people also type capitals. */
function byName(name: string, server: ServerName): Identified {
  const exact = isUserId(name) ? name : userId(name.startsWith('@') ? name.slice(1) : name, server)
  if (!isUserId(exact) || serverOf(exact) !== server) return { kind: 'user', ids: [] }
  const lower = exact.toLowerCase() as UserId
  return { kind: 'user', ids: lower === exact ? [exact] : [exact, lower] }
}

function byAddress(medium: string, address: string): Identified {
  if (!isMedium(medium)) throw new ProtocolError('M_UNKNOWN', "A 'medium' is 'email' or 'msisdn'.", { status: 400 })
  const normal = normaliseAddress(medium, address)
  // Postgres cannot store a NUL, so nobody has this name.
  return normal.includes('\0') ? { kind: 'user', ids: [] } : { kind: 'threepid', medium, address: normal }
}

async function byPhone(country: string, number: string): Promise<Identified> {
  try {
    return { kind: 'threepid', medium: 'msisdn', address: (await readPhoneNumber(country, number)).msisdn }
  } catch (error) {
    if (error instanceof ProtocolError && error.errcode === 'M_INVALID_ADDRESS') return { kind: 'user', ids: [] }
    throw error
  }
}
