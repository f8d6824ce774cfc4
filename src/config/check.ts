import { isIP } from 'node:net'
import { isServerName } from '../core/ids.ts'
import { isReturnAddress } from '../core/return-address.ts'
import { readClaimsTemplate } from '../core/template.ts'
import { type OptionSchema, secretInFile } from './options.ts'

interface Format {
  readonly means: string
  readonly accepts: (value: string) => boolean
}

const FORMATS: Readonly<Record<string, Format>> = {
  'server-name': { means: 'a host name or address with an optional port, such as example.org', accepts: isServerName },
  'http-url': {
    means: 'an address such as https://matrix.example.org, without query or fragment',
    accepts: isHttpUrl,
  },
  'postgres-url': {
    means: 'a connection string such as postgres://user:password@host/database',
    accepts: (value) => /^postgres(ql)?:\/\//.test(value) && URL.canParse(value.replace('@/', '@localhost/')),
  },
  'proxy-url': {
    means: 'an address such as http://proxy.example.org:3128, with %25 for a % in the password',
    accepts: (value) => /^https?:\/\/[^/?#]+\/?$/.test(value) && URL.canParse(value) && isDecodable(value),
  },
  cidr: { means: 'an IP address or range, such as 10.0.0.0/8', accepts: isRange },
  pattern: { means: 'a regular expression', accepts: isPattern },
  issuer: { means: 'an https address (http on this machine only)', accepts: isIssuer },
  'client-address': { means: 'the address of a client, such as https://app.example.org/', accepts: isReturnAddress },
  'claims-template': { means: 'text with claims, such as {{name}}', accepts: isTemplate },
}

/** Whether every % begins a character that can be decoded. */
function isDecodable(value: string): boolean {
  try {
    decodeURIComponent(value)
    return true
  } catch {
    return false
  }
}

/** The expected values of this option, in words. */
export function expectation(schema: OptionSchema): string {
  if (schema.enum !== undefined) return `one of ${schema.enum.join(', ')}`
  if (schema.type === 'array') return `a list, each item ${expectation(schema.items ?? {})}`
  if (schema.type === 'object') return `with ${keyList(schema)}`
  if (schema.type === 'boolean') return 'true or false'
  if (schema.type === 'integer') return `a whole number from ${schema.minimum} to ${schema.maximum}`
  if (schema.type === 'number') return `a number above ${schema.exclusiveMinimum}, at most ${schema.maximum}`
  if (schema.format !== undefined) return FORMATS[schema.format]!.means
  return `text${lengthOf(schema)}${schema.pattern === undefined ? '' : ` that matches ${schema.pattern}`}`
}

function lengthOf({ minLength = 0 }: OptionSchema): string {
  return minLength > 1 ? ` of at least ${minLength} characters` : ''
}

export function isValid(schema: OptionSchema, value: unknown): boolean {
  if (schema.enum !== undefined) return schema.enum.includes(value as string | boolean)
  switch (schema.type) {
    case 'array':
      return isValidList(schema, value)
    case 'object':
      return isValidObject(schema, value)
    case 'boolean':
      return typeof value === 'boolean'
    case 'integer':
      return Number.isSafeInteger(value) && isWithin(schema, value as number)
    case 'number':
      return typeof value === 'number' && isWithin(schema, value)
    default:
      return typeof value === 'string' && isValidText(schema, value)
  }
}

/** Converts the text of an environment variable or flag to this option's type; text that does not fit stays text and fails the check. */
export function fromText(schema: OptionSchema, text: string): unknown {
  if (schema.type === 'array') {
    if (schema.items?.type === 'object') return fromJson(text)
    const items = text.trim() === '' ? [] : text.split(',')
    return items.map((item) => fromText(schema.items ?? {}, item.trim()))
  }
  if (schema.type === 'boolean' || schema.enum?.includes(true)) {
    if (text === 'true' || text === 'false') return text === 'true'
  }
  if ((schema.type === 'integer' || schema.type === 'number') && /^-?\d+(\.\d+)?$/.test(text)) return Number(text)
  return text
}

function fromJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

function keyList({ properties = {}, required = [] }: OptionSchema): string {
  const keys = Object.entries(properties).map(([name, schema]) => {
    const isNested = schema.type === 'array' || schema.type === 'object'
    return `${name}${required.includes(name) ? '' : ' (optional)'}${isNested ? `: ${expectation(schema)}` : ''}`
  })
  return keys.join(', ')
}

/** Whether an item of a list is valid: it has only the declared keys. */
function isValidObject(schema: OptionSchema, value: unknown): boolean {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  const entries = Object.entries(value)
  return (
    (schema.required ?? []).every((name) => Object.hasOwn(value, name)) &&
    entries.every(([name, item]) => isValidKey(schema, name, item))
  )
}

function isValidKey(schema: OptionSchema, name: string, item: unknown): boolean {
  const secret = secretInFile(schema, name)
  if (secret !== undefined) return typeof item === 'string' && item !== ''
  const own = Object.hasOwn(schema.properties ?? {}, name) ? schema.properties?.[name] : undefined
  return own !== undefined && isValid(own, item)
}

function isValidList(schema: OptionSchema, value: unknown): boolean {
  return (
    Array.isArray(value) &&
    value.length >= (schema.minItems ?? 0) &&
    value.length <= (schema.maxItems ?? Number.POSITIVE_INFINITY) &&
    value.every((item) => isValid(schema.items ?? {}, item))
  )
}

function isWithin(schema: OptionSchema, value: number): boolean {
  return (
    value >= (schema.minimum ?? Number.NEGATIVE_INFINITY) &&
    value > (schema.exclusiveMinimum ?? Number.NEGATIVE_INFINITY) &&
    value <= (schema.maximum ?? Number.POSITIVE_INFINITY)
  )
}

function isValidText(schema: OptionSchema, value: string): boolean {
  if (value.length < (schema.minLength ?? 0)) return false
  if (schema.pattern !== undefined && !new RegExp(schema.pattern).test(value)) return false
  return schema.format === undefined || FORMATS[schema.format]!.accepts(value)
}

function isHttpUrl(value: string): boolean {
  if (!URL.canParse(value)) return false
  const url = new URL(value)
  return /^https?:$/.test(url.protocol) && url.search === '' && url.hash === '' && url.username + url.password === ''
}

function isPattern(value: string): boolean {
  try {
    return new RegExp(value) !== undefined
  } catch {
    return false
  }
}

function isIssuer(value: string): boolean {
  if (!isHttpUrl(value)) return false
  const { protocol, hostname } = new URL(value)
  if (protocol === 'https:') return true
  return hostname === 'localhost' || hostname === '[::1]' || (isIP(hostname) === 4 && hostname.startsWith('127.'))
}

function isTemplate(value: string): boolean {
  try {
    return readClaimsTemplate(value) !== undefined
  } catch {
    return false
  }
}

function isRange(value: string): boolean {
  const [address = '', bits] = value.split('/', 2)
  const family = isIP(address)
  if (family === 0) return false
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128))
}
