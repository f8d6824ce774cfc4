import type { JsonObject, JsonValue } from './json-value.ts'

/**
 * An integer of JSON: a number from -(2^53-1) to 2^53-1, a bigint beyond. `<` and `>` compare both kinds by value, and equal integers
 * are `===`; arithmetic does not mix the kinds.
 */
export type Integer = number | bigint

/** The longest integer that is read, in digits. It is Python's limit: the rooms that may have such integers come from there. */
export const MAX_INTEGER_DIGITS = 4_300

/** The number if it is small enough, else the bigint. */
export function integerOf(value: bigint): Integer {
  return value >= Number.MIN_SAFE_INTEGER && value <= Number.MAX_SAFE_INTEGER ? Number(value) : value
}

/** Clamps to the range of safe integers: for columns and clocks, on which no signature depends. */
export function clampToSafe(value: Integer): number {
  if (typeof value === 'number') return value
  return value < 0n ? Number.MIN_SAFE_INTEGER : Number.MAX_SAFE_INTEGER
}

/** The integer after this one. */
export function successorOf(value: Integer): Integer {
  return typeof value === 'number' && value < Number.MAX_SAFE_INTEGER ? value + 1 : integerOf(BigInt(value) + 1n)
}

/** For sorting in ascending order. Infinite values are allowed. */
export function compareIntegers(left: Integer, right: Integer): number {
  if (left < right) return -1
  return left > right ? 1 : 0
}

/** With this many digits an integer may be beyond 2^53-1. */
const LONG = 16
const ZERO = 0x30
const NINE = 0x39

const isDigit = (code: number): boolean => code >= ZERO && code <= NINE

/** Whether the text has that many digits in a row, even within a string. It tests every sixteenth character, so most texts pass quickly. */
function holdsLongNumber(text: string): boolean {
  for (let at = LONG - 1; at < text.length; at += LONG) {
    if (!isDigit(text.charCodeAt(at))) continue
    let from = at
    while (from > 0 && isDigit(text.charCodeAt(from - 1))) from--
    let to = at + 1
    while (to < text.length && isDigit(text.charCodeAt(to))) to++
    if (to - from >= LONG) return true
  }
  return false
}

/** Parses our own JSON, such as a stored event: as `JSON.parse`, with integers beyond 2^53-1 as bigints. */
export function parseExact(text: string): JsonValue {
  return holdsLongNumber(text) ? readExact(text) : (JSON.parse(text) as JsonValue)
}

/**
 * As `JSON.parse`, with integers beyond 2^53-1 as bigints. It is much slower, so use it only for texts that have such integers or another
 * offence.
 *
 * @param text that `JSON.parse` takes, nested no deeper than the stack allows
 */
export function readExact(text: string): JsonValue {
  return new ExactReader(text).value()
}

/** A number, `true`, `false` or `null`. */
const PLAIN = /[^\s,\]}]+/y
const STRING = /"(?:[^"\\]|\\.)*"/y
const SPACE = /\s*/y
const INTEGER = /^-?[0-9]+$/

class ExactReader {
  readonly #text: string
  #at = 0

  constructor(text: string) {
    this.#text = text
  }

  value(): JsonValue {
    this.#take(SPACE)
    const first = this.#text[this.#at]
    if (first === '{') return this.#object()
    if (first === '[') return this.#list()
    if (first === '"') return JSON.parse(this.#take(STRING)) as string
    const word = this.#take(PLAIN)
    const value = JSON.parse(word) as number | boolean | null
    return Number.isSafeInteger(value) || !INTEGER.test(word) ? value : BigInt(word)
  }

  #object(): JsonObject {
    const members: [string, JsonValue][] = []
    while (this.#isNext('}')) {
      const name = JSON.parse(this.#take(STRING)) as string
      this.#take(SPACE)
      this.#at++
      members.push([name, this.value()])
    }
    return Object.fromEntries(members)
  }

  #list(): JsonValue[] {
    const values: JsonValue[] = []
    while (this.#isNext(']')) values.push(this.value())
    return values
  }

  /** Steps over what opens a list, or separates its elements, to the next; false once it has ended. */
  #isNext(end: string): boolean {
    this.#take(SPACE)
    if (this.#text[this.#at] !== end) {
      this.#at++
      this.#take(SPACE)
    }
    if (this.#text[this.#at] !== end) return true
    this.#at++
    return false
  }

  #take(pattern: RegExp): string {
    pattern.lastIndex = this.#at
    const [found] = pattern.exec(this.#text)!
    this.#at += found.length
    return found
  }
}

/** As `JSON.stringify`, but writes bigints as integers. */
export function writeJson(value: unknown): string {
  try {
    return JSON.stringify(value)
  } catch (error) {
    // `JSON.stringify` throws this for a bigint, and for cycles, which do not occur in answers.
    if (!(error instanceof TypeError)) throw error
    return writeExact(value) ?? 'null'
  }
}

/** Undefined for values that JSON cannot hold. */
function writeExact(value: unknown): string | undefined {
  if (typeof value === 'bigint') return `${value}`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map((each) => writeExact(each) ?? 'null').join(',')}]`
  const members = Object.entries(value).flatMap(([key, each]) => {
    const text = writeExact(each)
    return text === undefined ? [] : [`${JSON.stringify(key)}:${text}`]
  })
  return `{${members.join(',')}}`
}
