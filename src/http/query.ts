import { ProtocolError } from '../core/errors.ts'
import type { Shape } from '../core/shapes.ts'
import type { RoleCodes } from './role.ts'
import { type Offences, validator } from './validate.ts'

export type RawQuery = Readonly<Record<string, string | string[]>>

/** What a query string with a broken percent escape parses to. */
export const BAD_QUERY: RawQuery = Object.freeze({})
const NO_QUERY: RawQuery = Object.freeze({})

function decode(text: string): string {
  const spaced = text.includes('+') ? text.replaceAll('+', ' ') : text
  return spaced.includes('%') ? decodeURIComponent(spaced) : spaced
}

/** `a=1&b=2&b=3` to `{a: '1', b: ['2', '3']}`; `BAD_QUERY` when an escape is broken or is not UTF-8. */
export function parseQuery(text: string): RawQuery {
  if (text === '') return NO_QUERY
  const query: Record<string, string | string[]> = Object.create(null)
  try {
    for (const pair of text.split('&')) {
      if (pair === '') continue
      const equals = pair.indexOf('=')
      const name = decode(equals === -1 ? pair : pair.slice(0, equals))
      const value = equals === -1 ? '' : decode(pair.slice(equals + 1))
      const before = query[name]
      if (before === undefined) query[name] = value
      else if (Array.isArray(before)) before.push(value)
      else query[name] = [before, value]
    }
  } catch {
    return BAD_QUERY
  }
  return query
}

type Kind = 'string' | 'integer' | 'number' | 'boolean'

interface Parameter {
  readonly name: string
  readonly kind: Kind
  readonly repeats: boolean
  readonly isOptional: boolean
}

interface PropertySchema {
  /** Of several types, a text is read as the first. */
  readonly type?: string | readonly string[]
  readonly items?: PropertySchema
  readonly required?: readonly string[]
  readonly properties?: Readonly<Record<string, PropertySchema>>
}

function parameters(schema: PropertySchema): Parameter[] {
  return Object.entries(schema.properties ?? {}).map(([name, property]) => {
    const repeats = property.type === 'array'
    const [kind = 'string'] = [(repeats ? property.items?.type : property.type) ?? []].flat()
    return { name, repeats, kind: kind as Kind, isOptional: schema.required?.includes(name) !== true }
  })
}

function invalid(name: string, expected: string): ProtocolError {
  return new ProtocolError('M_INVALID_PARAM', `Query parameter '${name}' ${expected}.`)
}

function coerce(name: string, kind: Kind, text: string): string | number | boolean {
  switch (kind) {
    case 'integer': {
      const value = /^-?\d{1,16}$/.test(text) ? Number(text) : Number.NaN
      if (!Number.isSafeInteger(value)) throw invalid(name, 'must be an integer')
      return value
    }
    case 'number': {
      const value = /^-?\d+(?:\.\d+)?$/.test(text) ? Number(text) : Number.NaN
      if (!Number.isFinite(value)) throw invalid(name, 'must be a number')
      return value
    }
    case 'boolean':
      if (text !== 'true' && text !== 'false') throw invalid(name, 'must be true or false')
      return text === 'true'
    default:
      return text
  }
}

/** The one value of a parameter that may not repeat. */
export function single(query: RawQuery, name: string): string | undefined {
  const value = query[name]
  if (Array.isArray(value)) throw invalid(name, 'is given more than once')
  return value
}

/**
 * Reads the declared parameters of a query or a form, converted to their types. Other parameters are ignored, and so are empty optional
 * ones.
 */
export function queryReader(
  schema: Shape,
  codes: RoleCodes,
  what: Offences['what'] = 'Query parameter',
): (query: RawQuery) => unknown {
  const declared = parameters(schema as PropertySchema)
  const check = validator(schema, { missing: codes.missingParam, wrongType: 'M_INVALID_PARAM', what })
  return (query) => {
    const typed: Record<string, unknown> = {}
    for (const { name, kind, repeats, isOptional } of declared) {
      if (query[name] === undefined) continue
      if (repeats) {
        const values = [query[name]].flat().filter((text) => !(isOptional && text === ''))
        if (values.length > 0) typed[name] = values.map((text) => coerce(name, kind, text))
      } else {
        const text = single(query, name)!
        if (text !== '' || !isOptional) typed[name] = coerce(name, kind, text)
      }
    }
    check(typed)
    return typed
  }
}
