import { isUtf8 } from 'node:buffer'
import { createCache } from '../core/cache.ts'
import { ProtocolError } from '../core/errors.ts'
import { JsonTooDeepError, type JsonValue, type ReadJson, readJson } from '../core/json.ts'
import { MAX_REMEMBERED_BODY_BYTES } from '../domain/limits/sliding-sync.ts'
import type { Endpoint } from './endpoint.ts'
import { BAD_QUERY, parseQuery, queryReader, type RawQuery } from './query.ts'
import type { Arrived } from './request.ts'
import type { RoleCodes } from './role.ts'
import { validator } from './validate.ts'

/** A request's body after reading. */
export interface Body {
  readonly value: JsonValue
  readonly offence: ReadJson['offence']
  /** In memory, if it is kept. */
  readonly bytes?: number
}

/** Bytes of a parsed body, and how many times longer it is in memory than as text. */
const PARSED_BYTES = 1_000
const READ_TIMES = 8

/** What of a request is read. */
export type Unread = Pick<Arrived, 'body' | 'headers' | 'query'>

export interface BodyReader {
  parse(raw: Unread): Body
  /** Throws unless the value has the endpoint's declared shape. */
  check(body: Body): void
}

/** How the bodies of an endpoint are read and checked; undefined when it wants none. */
export function bodyReader({ options }: Endpoint, codes: RoleCodes): BodyReader | undefined {
  if (options.body === undefined) return undefined
  const validate = validator(options.body, { missing: codes.missingParam, wrongType: codes.wrongType, what: 'Key' })
  const check = ({ value }: Body): void => validate(value)
  const parseJson = (raw: Unread): Body => parseBody(raw.body, options.bodyOptional === true)
  if (options.bodiesRepeat) return remembering({ parse: parseJson, check })
  if (!options.forms) return { parse: parseJson, check }
  const readForm = queryReader(options.body, codes, 'Key')
  return {
    parse(raw) {
      if (isForm(raw)) return { value: readForm(parseForm(raw.body)) as JsonValue, offence: undefined }
      if (isAbsent(raw.body)) return { value: readForm(raw.query as RawQuery) as JsonValue, offence: undefined }
      return parseJson(raw)
    },
    check,
  }
}

/** Parses and checks equal bodies once. */
function remembering({ parse, check }: BodyReader): BodyReader {
  const known = createCache<string, Body>(MAX_REMEMBERED_BODY_BYTES, { sizeOf: ({ bytes = 1 }) => bytes })
  return {
    parse(raw) {
      const text = Buffer.isBuffer(raw.body) ? raw.body.toString('latin1') : ''
      const found = known.get(text)
      if (found) return found
      const body = { ...parse(raw), bytes: PARSED_BYTES + READ_TIMES * text.length }
      check(body)
      known.set(text, body)
      return body
    },
    check() {},
  }
}

/** Reads a request's bytes as JSON, whatever their content type. An empty body is `{}` if that is allowed. */
function parseBody(raw: unknown, emptyAllowed: boolean): ReadJson {
  if (!Buffer.isBuffer(raw) || raw.length === 0) {
    if (emptyAllowed) return { value: {}, offence: undefined }
    throw new ProtocolError('M_NOT_JSON', 'The request has no body; this endpoint wants a JSON object.')
  }
  try {
    return readJson(raw)
  } catch (error) {
    if (error instanceof JsonTooDeepError) {
      throw new ProtocolError('M_BAD_JSON', 'The request body is nested too deeply.')
    }
    throw new ProtocolError('M_NOT_JSON', 'The request body is not JSON.')
  }
}

/** The second is how the first identity interface spelled it. */
const FORM_TYPE = /^application\/(?:x-www-form-urlencoded|x-form-www-urlencoded)\s*(?:;|$)/i

function isForm(raw: Unread): boolean {
  return FORM_TYPE.test(raw.headers['content-type'] ?? '')
}

/** Old clients of the identity service send their parameters in the query, and `null` in the body. */
function isAbsent(body: unknown): boolean {
  return !Buffer.isBuffer(body) || body.length === 0 || (body.length < 16 && body.toString('latin1').trim() === 'null')
}

function parseForm(body: unknown): RawQuery {
  const bytes = Buffer.isBuffer(body) ? body : Buffer.alloc(0)
  const form = isUtf8(bytes) ? parseQuery(bytes.toString('utf8')) : BAD_QUERY
  if (form === BAD_QUERY) throw new ProtocolError('M_INVALID_PARAM', 'The form holds a broken percent escape.')
  return form
}
