import { isUtf8 } from 'node:buffer'
import type { JsonObject, JsonPrimitive, JsonValue } from './json-value.ts'
import { MAX_INTEGER_DIGITS, readExact } from './large-integers.ts'

export type { JsonObject, JsonPrimitive, JsonValue }

/** What canonical JSON forbids (appendices, "Canonical JSON") although `JSON.parse` accepts it. */
export type JsonOffence = 'float' | 'negative-zero' | 'integer-range' | 'lone-surrogate'

export interface ReadJson {
  readonly value: JsonValue
  /** The first thing found that canonical JSON forbids. A repeated key is no offence: its last value counts. */
  readonly offence: JsonOffence | undefined
}

/**
 * The text is not JSON, not UTF-8, or has a number that this reader refuses: a float beyond the range of doubles, or an integer with too many
 * digits. The message never contains the input.
 */
export class NotJsonError extends Error {
  constructor() {
    super('not JSON')
    this.name = 'NotJsonError'
  }
}

/** Arrays and objects are nested deeper than the reader allows. */
export class JsonTooDeepError extends Error {
  constructor() {
    super('JSON is nested too deeply')
    this.name = 'JsonTooDeepError'
  }
}

/** The deepest nesting of arrays and objects that is read. */
export const MAX_DEPTH = 100

export function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/**
 * Parses JSON strictly enough for data that is hashed or signed.
 *
 * Depth is checked on the text before parsing, so that a hostile body costs one pass over it.
 * Number forms (`1.0`, `-0`, 2^53) are checked there too, because the parsed value no longer shows them.
 *
 * @throws NotJsonError, JsonTooDeepError
 */
export function readJson(input: string | Uint8Array, maxDepth: number = MAX_DEPTH): ReadJson {
  const text = typeof input === 'string' ? input : decodeUtf8(input)
  const numberOffence = scan(text, maxDepth)
  const value = numberOffence === undefined ? parse(text) : parseFinite(text)
  const offence = numberOffence ?? (maySplitSurrogates(text) && hasLoneSurrogate(value) ? 'lone-surrogate' : undefined)
  return { value, offence }
}

/**
 * The same, with exact integers of any size: those beyond 2^53-1 are bigints, and are still reported as an offence.
 *
 * @throws NotJsonError, JsonTooDeepError
 */
export function readExactJson(input: string | Uint8Array): ReadJson {
  const text = typeof input === 'string' ? input : decodeUtf8(input)
  const { value, offence } = readJson(text)
  return { value: offence === undefined ? value : readExact(text), offence }
}

function decodeUtf8(bytes: Uint8Array): string {
  if (!isUtf8(bytes)) throw new NotJsonError()
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8')
}

function parse(text: string): JsonValue {
  try {
    return JSON.parse(text) as JsonValue
  } catch {
    throw new NotJsonError()
  }
}

/** Integers beyond the range of doubles become the greatest double instead of infinity. */
function parseFinite(text: string): JsonValue {
  if (!/[0-9]{309}/.test(text)) return parse(text)
  try {
    return JSON.parse(text, (_, value: unknown) => finite(value)) as JsonValue
  } catch {
    throw new NotJsonError()
  }
}

function finite(value: unknown): unknown {
  if (value === Number.POSITIVE_INFINITY) return Number.MAX_VALUE
  return value === Number.NEGATIVE_INFINITY ? -Number.MAX_VALUE : value
}

const QUOTE = 0x22
const MINUS = 0x2d
const ZERO = 0x30
const NINE = 0x39
const BACKSLASH = 0x5c

/** One pass over the text outside strings: depth and number forms. For text that is not JSON the result is arbitrary. */
function scan(text: string, maxDepth: number): JsonOffence | undefined {
  let depth = 0
  let offence: JsonOffence | undefined
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) {
      at = endOfString(text, at)
    } else if (code === MINUS || (code >= ZERO && code <= NINE)) {
      const end = endOfNumber(text, at)
      // Up to 15 plain digits are always safe. Every other number is checked, even after an offence, since it may make the text invalid.
      const found = end - at > 15 || !isPlainInteger(text, at, end) ? numberOffence(text.slice(at, end)) : undefined
      offence ??= found
      at = end - 1
    } else if ((code | 0x20) === 0x7b) {
      // `[` or `{`: they differ in this bit alone, as `]` and `}` do.
      if (++depth > maxDepth) throw new JsonTooDeepError()
    } else if ((code | 0x20) === 0x7d) {
      depth--
    }
  }
  return offence
}

/** Where the string that opens at `open` closes: a quote after an even run of backslashes. */
function endOfString(text: string, open: number): number {
  for (let close = text.indexOf('"', open + 1); close !== -1; close = text.indexOf('"', close + 1)) {
    let run = close
    while (text.charCodeAt(run - 1) === BACKSLASH) run--
    if ((close - run) % 2 === 0) return close
  }
  return text.length
}

function endOfNumber(text: string, start: number): number {
  let end = start + 1
  while (isNumberPart(text.charCodeAt(end))) end++
  return end
}

/** Digits, `+`, `-`, `.`, `e` and `E`. */
function isNumberPart(code: number): boolean {
  return (code >= ZERO && code <= NINE) || code === MINUS || code === 0x2b || code === 0x2e || (code | 0x20) === 0x65
}

function isPlainInteger(text: string, start: number, end: number): boolean {
  for (let at = start; at < end; at++) {
    const code = text.charCodeAt(at)
    if (code < ZERO || code > NINE) return false
  }
  return true
}

function numberOffence(literal: string): JsonOffence | undefined {
  const value = Number(literal)
  if (/[.eE]/.test(literal)) {
    if (Math.abs(value) === Number.POSITIVE_INFINITY) throw new NotJsonError()
    return 'float'
  }
  if (literal.length > MAX_INTEGER_DIGITS) throw new NotJsonError()
  if (literal === '-0') return 'negative-zero'
  return Number.isSafeInteger(value) ? undefined : 'integer-range'
}

/** A cheap test for texts that may contain a lone surrogate. It also finds escapes of whole pairs. */
function maySplitSurrogates(text: string): boolean {
  return !isWellFormed(text) || (text.includes('\\') && /\\u[dD][89a-fA-F]/.test(text))
}

/** Whether a text has no lone surrogate. (Every supported Node has the method, but the types of our language level do not.) */
export function isWellFormed(text: string): boolean {
  return (text as string & { isWellFormed(): boolean }).isWellFormed()
}

/** Whether a text anywhere in a value, a key included, has a lone surrogate. */
export function hasLoneSurrogate(value: JsonValue): boolean {
  if (typeof value === 'string') return !isWellFormed(value)
  if (typeof value !== 'object' || value === null) return false
  if (Array.isArray(value)) return value.some(hasLoneSurrogate)
  return Object.keys(value).some((key) => !isWellFormed(key) || hasLoneSurrogate(value[key]!))
}
