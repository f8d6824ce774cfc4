import {
  isWellFormed,
  type JsonObject,
  type JsonOffence,
  JsonTooDeepError,
  type JsonValue,
  MAX_DEPTH,
} from '../json.ts'

/** What was read may be wrapped (content in an event, events in a transaction) before it is written. */
const MAX_WRITTEN_DEPTH = 2 * MAX_DEPTH

/** Strings that need no escape and, as keys, sort by code point as they do by UTF-16 unit. */
const PLAIN = /^[ !#-[\]-\ud7ff]*$/

const REMEMBERED_KEYS = 1000
const REMEMBERED_KEY_LENGTH = 64
/** The written form of plain keys seen lately: events repeat a few dozen. Emptied when full, so that no sender can spoil it for good. */
const keyTexts = new Map<string, string>()

/**
 * Canonical JSON (appendices, "Canonical JSON"): keys in code-point order, no spaces, shortest escapes.
 *
 * Takes what `readExactJson` gave, or `readJson` without an offence. Nothing is published for floats, which only old room
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

/**
 * The first thing that canonical JSON forbids in a value that was parsed already. What the parsed value no longer shows
 * (`1.0`, `1e2`) only `readJson` can find.
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
