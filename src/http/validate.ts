import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import type { Ajv, ErrorObject, ValidateFunction } from 'ajv'
import { type Errcode, ProtocolError } from '../core/errors.ts'
import { isEventId, isRoomAlias, isRoomId, isUserId } from '../core/ids.ts'
import type { JsonValue } from '../core/json.ts'
import type { Shape } from '../core/shapes.ts'
import { type Declared, dropNulls } from './absence.ts'
import { quickCheck } from './quick-check.ts'

/** The error codes of a validation, and the name of the validated thing. */
export interface Offences {
  readonly missing: Errcode
  /** For a key; a body that is not an object is always `M_BAD_JSON`. */
  readonly wrongType: Errcode
  readonly what: 'Key' | 'Query parameter'
}

const requireHere = createRequire(import.meta.url)
/** The library in one file, as the build makes it. */
const BUILT = fileURLToPath(new URL('ajv.cjs', import.meta.url))

const FORMATS = { 'user-id': isUserId, 'room-id': isRoomId, 'event-id': isEventId, 'room-alias': isRoomAlias }

/** Compiles a schema. The first call loads the compiler and replaces this one. */
let compile = (schema: object): ValidateFunction => {
  const library: typeof import('ajv') = requireHere(existsSync(BUILT) ? BUILT : 'ajv')
  // Nothing is coerced, added or removed, except optional keys that are `null`: handlers see what was sent.
  const ajv: Ajv = new library.Ajv({
    strict: false,
    strictNumbers: true,
    coerceTypes: false,
    useDefaults: false,
    removeAdditional: false,
    ownProperties: true,
    validateSchema: false,
    formats: FORMATS,
  })
  compile = (next) => ajv.compile(next)
  return compile(schema)
}

/** `/users/0/name` as `users.0.name` */
function nameOf(pointer: string): string {
  return pointer.slice(1).replaceAll('/', '.').replaceAll('~1', '/').replaceAll('~0', '~')
}

function joined(parent: string, key: string): string {
  return parent === '' ? key : `${parent}.${key}`
}

const FORMAT_NAMES: Readonly<Record<string, string>> = {
  'user-id': 'a user id (@localpart:server)',
  'room-id': 'a room id (!opaque:server)',
  'event-id': 'an event id ($...)',
  'room-alias': 'a room alias (#name:server)',
}

function expectation(error: ErrorObject): string {
  const { keyword, params } = error
  switch (keyword) {
    case 'type':
      return `must be ${/^[aeio]/.test(String(params.type)) ? 'an' : 'a'} ${[params.type].flat().join(' or ')}`
    case 'enum':
      return `must be one of ${(params.allowedValues as unknown[]).map((value) => JSON.stringify(value)).join(', ')}`
    case 'const':
      return `must be ${JSON.stringify(params.allowedValue)}`
    case 'format':
      return `must be ${FORMAT_NAMES[params.format as string] ?? `a ${params.format}`}`
    case 'anyOf':
      return 'has a value that is not one of the allowed kinds'
    default:
      return error.message ?? 'is not valid'
  }
}

function problem(errors: readonly ErrorObject[], offences: Offences): ProtocolError {
  const error = errors.at(-1)
  if (error === undefined) return new ProtocolError(offences.wrongType, 'The request is not valid.')
  const name = nameOf(error.instancePath)
  if (error.keyword === 'required') {
    return new ProtocolError(
      offences.missing,
      `${offences.what} '${joined(name, error.params.missingProperty)}' is missing.`,
    )
  }
  const subject = name === '' ? 'The body' : `${offences.what} '${name}'`
  const wrongType = name === '' ? 'M_BAD_JSON' : offences.wrongType
  const errcode = error.keyword === 'type' || error.keyword === 'anyOf' ? wrongType : 'M_INVALID_PARAM'
  return new ProtocolError(errcode, `${subject} ${expectation(error)}.`)
}

const acceptsNull = (schema: object): boolean => compile(schema)(null) === true

const NEVER = (): boolean => false

/**
 * Makes a check against a schema. It throws an error that names the mistake: the schema is compiled with the first one. Optional keys that
 * are `null` count as absent; the check searches for them only if validation fails, so a valid body costs nothing more.
 */
export function validator(schema: Shape, offences: Offences): (value: unknown) => void {
  let isRight: ((value: unknown) => boolean) | undefined
  let compiled: ValidateFunction | undefined
  return (value) => {
    isRight ??= quickCheck(schema, FORMATS) ?? NEVER
    if (isRight(value)) return
    compiled ??= compile(schema)
    if (compiled(value)) return
    if (dropNulls(schema as Declared, value as JsonValue, acceptsNull) && compiled(value)) return
    throw problem(compiled.errors ?? [], offences)
  }
}
