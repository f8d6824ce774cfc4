import { isUtf8 } from 'node:buffer'
import type { JsonObject, JsonPrimitive, JsonValue } from './json-value.ts'
import { MAX_INTEGER_DIGITS, readExact } from './large-integers.ts'

export type { JsonObject, JsonPrimitive, JsonValue }

/** What canonical JSON forbids (appendices, "Canonical JSON") though `JSON.parse` lets it pass. */
export type JsonOffence = 'float' | 'negative-zero' | 'integer-range' | 'lone-surrogate'

export interface ReadJson {
  readonly value: JsonValue
  /** The first thing found that canonical JSON forbids. Of a repeated key the last value stands and no offence is noted. */
  readonly offence: JsonOffence | undefined
}

/**
 * The text is not JSON, not UTF-8, or holds a number that nobody reads: a float that no double can be, an integer without end. The
 * message never repeats the input.
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

/** How deep arrays and objects may nest in what is read. */
export const MAX_DEPTH = 100

/** What was read may be wrapped (content in an event, events in a transaction) before it is written. */
const MAX_WRITTEN_DEPTH = 2 * MAX_DEPTH

export function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/**
 * Parses JSON strictly enough for what will be hashed or signed.
 *
 * Depth is judged on the text before anything is built, so that a hostile body costs one pass over it.
 * Number forms (`1.0`, `-0`, 2^53) are judged there too: the parsed tree no longer shows them.
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
 * The same, with integers of any size as they are: those beyond 2^53-1 are bigints, and their offence is noted as ever.
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

/** Integers that no double holds become the greatest that one does, and not infinite. */
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

/** One pass over the text outside strings: depth and number forms. Text that is not JSON gives an arbitrary answer, and ends. */
function scan(text: string, maxDepth: number): JsonOffence | undefined {
  let depth = 0
  let offence: JsonOffence | undefined
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) {
      at = endOfString(text, at)
    } else if (code === MINUS || (code >= ZERO && code <= NINE)) {
      const end = endOfNumber(text, at)
      // Up to 15 plain digits are always safe. Every other one is looked at: what no double can hold is no JSON, whatever stood before.
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

/** A cheap look for what could leave half a surrogate pair in a string; escapes of whole pairs are suspected too. */
function maySplitSurrogates(text: string): boolean {
  return !isWellFormed(text) || (text.includes('\\') && /\\u[dD][89a-fA-F]/.test(text))
}

/** Whether no surrogate stands alone. (The method is in every supported Node, though not yet in the language level the types are for.) */
export function isWellFormed(text: string): boolean {
  return (text as string & { isWellFormed(): boolean }).isWellFormed()
}

function hasLoneSurrogate(value: JsonValue): boolean {
  if (typeof value === 'string') return !isWellFormed(value)
  if (typeof value !== 'object' || value === null) return false
  if (Array.isArray(value)) return value.some(hasLoneSurrogate)
  return Object.keys(value).some((key) => !isWellFormed(key) || hasLoneSurrogate(value[key]!))
}

/**
 * The first thing that canonical JSON forbids in a value that was parsed already. What the parsed value no longer shows
 * (`1.0`, `1e2`) only {@link readJson} can find.
 *
 * @throws JsonTooDeepError where arrays and objects are nested deeper than `maxDepth`
 */
export function offenceIn(value: JsonValue, maxDepth: number = MAX_DEPTH): JsonOffence | undefined {
  if (typeof value === 'string') return isWellFormed(value) ? undefined : 'lone-surrogate'
  if (typeof value === 'number') return offenceOfNumber(value)
  if (typeof value !== 'object' || value === null) return typeof value === 'bigint' ? 'integer-range' : undefined
  if (maxDepth === 0) throw new JsonTooDeepError()
  return Array.isArray(value) ? offenceInList(value, maxDepth - 1) : offenceInObject(value, maxDepth - 1)
}

function offenceOfNumber(value: number): JsonOffence | undefined {
  if (Number.isSafeInteger(value)) return Object.is(value, -0) ? 'negative-zero' : undefined
  return Number.isInteger(value) ? 'integer-range' : 'float'
}

function offenceInList(values: JsonValue[], depthLeft: number): JsonOffence | undefined {
  for (const value of values) {
    const offence = offenceIn(value, depthLeft)
    if (offence !== undefined) return offence
  }
  return undefined
}

function offenceInObject(object: JsonObject, depthLeft: number): JsonOffence | undefined {
  for (const key of Object.keys(object)) {
    const offence = isWellFormed(key) ? offenceIn(object[key]!, depthLeft) : 'lone-surrogate'
    if (offence !== undefined) return offence
  }
  return undefined
}

/** Strings that need no escape and, as keys, sort by code point as they do by UTF-16 unit. */
const PLAIN = /^[ !#-[\]-\ud7ff]*$/

const REMEMBERED_KEYS = 1000
const REMEMBERED_KEY_LENGTH = 64
/** The written form of plain keys seen lately: events repeat a few dozen. Emptied when full, so that no sender can spoil it for good. */
const keyTexts = new Map<string, string>()

/**
 * Canonical JSON (appendices, "Canonical JSON"): keys in code-point order, no spaces, shortest escapes.
 *
 * Takes what {@link readExactJson} gave, or {@link readJson} without an offence. Nothing is published for floats, which only old room
 * versions allow: they are written as Python writes them, in which such events were signed. A lone surrogate is written as its escape.
 *
 * @throws JsonTooDeepError past twice {@link MAX_DEPTH}
 */
export function encodeCanonical(value: JsonValue): string {
  return encode(value, MAX_WRITTEN_DEPTH)
}

function encode(value: JsonValue, depthLeft: number): string {
  if (typeof value === 'string') return encodeString(value)
  if (typeof value === 'object' && value !== null) {
    if (depthLeft === 0) throw new JsonTooDeepError()
    return Array.isArray(value) ? encodeArray(value, depthLeft - 1) : encodeObject(value, depthLeft - 1)
  }
  return typeof value === 'number' ? encodeNumber(value) : `${value}`
}

function encodeNumber(value: number): string {
  if (Number.isSafeInteger(value)) return `${value}`
  if (!Number.isFinite(value)) throw new TypeError('not a JSON number')
  const size = Math.abs(value)
  // Small and great floats have an exponent, of at least two digits; integers of that size are bigints where they may be.
  if (size < 1e-4 || size >= 1e16) return value.toExponential().replace(/-(\d)$/, '-0$1')
  return Number.isInteger(value) ? `${value}.0` : `${value}`
}

function encodeString(value: string): string {
  return PLAIN.test(value) ? `"${value}"` : JSON.stringify(value)
}

function encodeArray(values: JsonValue[], depthLeft: number): string {
  let text = '['
  for (let index = 0; index < values.length; index++) {
    if (index > 0) text += ','
    text += encode(values[index]!, depthLeft)
  }
  return `${text}]`
}

function encodeObject(object: JsonObject, depthLeft: number): string {
  const keys = sortKeys(Object.keys(object))
  let text = '{'
  for (let index = 0; index < keys.length; index++) {
    const key = keys[index]!
    const keyText = keyTexts.get(key) ?? plainKeyText(key)
    if (index > 0) text += ','
    if (keyText === undefined) return `${text}${encodeOddMembers(object, keys.slice(index), depthLeft)}}`
    text += keyText + encode(object[key]!, depthLeft)
  }
  return `${text}}`
}

/** From the first key on that is not plain. The two orders differ only among keys that are not, so what stands before it stays. */
function encodeOddMembers(object: JsonObject, keys: string[], depthLeft: number): string {
  keys.sort(compareCodePoints)
  return keys.map((key) => `${encodeString(key)}:${encode(object[key]!, depthLeft)}`).join(',')
}

/**
 * Writes an object whose values are texts, in the order given.
 *
 * A plain object would take several times as long to make and to write when it has a thousand keys that no other has.
 *
 * @param entries with distinct keys
 */
export function encodeTexts(entries: Iterable<readonly [key: string, text: string]>): string {
  let text = ''
  for (const [key, value] of entries) text += `${text === '' ? '{' : ','}${encodeString(key)}:${encodeString(value)}`
  return text === '' ? '{}' : `${text}}`
}

function plainKeyText(key: string): string | undefined {
  if (!PLAIN.test(key)) return undefined
  const text = `"${key}":`
  if (key.length <= REMEMBERED_KEY_LENGTH) {
    if (keyTexts.size >= REMEMBERED_KEYS) keyTexts.clear()
    keyTexts.set(key, text)
  }
  return text
}

/** By UTF-16 unit, in place. Insertion is quickest on the few, mostly sorted keys of an event. */
function sortKeys(keys: string[]): string[] {
  if (keys.length > 24) return keys.sort()
  for (let index = 1; index < keys.length; index++) {
    const key = keys[index]!
    let gap = index
    for (; gap > 0 && keys[gap - 1]! > key; gap--) keys[gap] = keys[gap - 1]!
    keys[gap] = key
  }
  return keys
}

/** An object's own keys in canonical order. */
export function canonicalKeys(object: JsonObject): string[] {
  const keys = sortKeys(Object.keys(object))
  return keys.every((key) => PLAIN.test(key)) ? keys : keys.sort(compareCodePoints)
}

/** Orders strings by Unicode code point. UTF-16 order differs where a surrogate meets a unit from U+E000 on. */
export function compareCodePoints(left: string, right: string): number {
  const length = Math.min(left.length, right.length)
  for (let index = 0; index < length; index++) {
    const difference = codePointRank(left.charCodeAt(index)) - codePointRank(right.charCodeAt(index))
    if (difference !== 0) return difference
  }
  return left.length - right.length
}

/** Moves surrogates behind all other units. */
function codePointRank(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x2800 : unit
}
