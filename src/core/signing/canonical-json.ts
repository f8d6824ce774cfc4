import {
  isWellFormed,
  type JsonObject,
  type JsonOffence,
  JsonTooDeepError,
  type JsonValue,
  MAX_DEPTH,
} from '../json.ts'

/** Greater than the depth for reading, because data is wrapped before it is written (content in an event, events in a transaction). */
const MAX_WRITTEN_DEPTH = 2 * MAX_DEPTH

/** Strings that need no escape. As keys, they sort the same by code point and by UTF-16 unit. */
const PLAIN = /^[ !#-[\]-\ud7ff]*$/

const REMEMBERED_KEYS = 1000
const REMEMBERED_KEY_LENGTH = 64
/** A cache of the encoded form of plain keys: events repeat a few dozen. It is emptied when full, so that no sender can fill it for good. */
const keyTexts = new Map<string, string>()

/**
 * Canonical JSON (appendices, "Canonical JSON"): keys in code-point order, no spaces, shortest escapes.
 *
 * The value must come from `readExactJson`, or from `readJson` without an offence. Floats, which only old room versions allow, have no
 * published form: they are written as Python writes them, because such events were signed there. A lone surrogate is written as its escape.
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
  // Small and large floats have an exponent of at least two digits. Integers of that size are bigints if they may be exact.
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

/** Encodes the members from the first key on that is not plain. The two orders agree up to there. */
function encodeOddMembers(object: JsonObject, keys: string[], depthLeft: number): string {
  keys.sort(compareCodePoints)
  return keys.map((key) => `${encodeString(key)}:${encode(object[key]!, depthLeft)}`).join(',')
}

/**
 * Writes an object whose values are strings, in the given order.
 *
 * With a thousand distinct keys, this is several times faster than building a plain object and encoding that.
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

/** Sorts by UTF-16 unit, in place. Insertion sort is fastest for the few, mostly sorted keys of an event. */
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

/** Compares strings by Unicode code point. The order of UTF-16 units differs between surrogates and units from U+E000 on. */
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

/**
 * The first thing that canonical JSON forbids in a parsed value. Only `readJson` finds forms that the parsed value no longer shows
 * (`1.0`, `1e2`).
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
