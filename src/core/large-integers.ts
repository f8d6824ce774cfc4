import type { JsonObject, JsonValue } from './json-value.ts'

/**
 * An integer as JSON may hold one: a number up to 2^53-1 either way, a bigint beyond. `<` and `>` compare the two by value, and equal ones
 * are `===`; arithmetic does not mix them.
 */
export type Integer = number | bigint

/** The longest integer that is read, in digits: Python reads no longer ones, in which the rooms that may hold them were made. */
export const MAX_INTEGER_DIGITS = 4_300

/** The shorter of the two forms. */
export function integerOf(value: bigint): Integer {
  return value >= Number.MIN_SAFE_INTEGER && value <= Number.MAX_SAFE_INTEGER ? Number(value) : value
}

/** The nearest that a double counts to without a gap: for columns and clocks, which nothing signed depends on. */
export function clampToSafe(value: Integer): number {
  if (typeof value === 'number') return value
  return value < 0n ? Number.MIN_SAFE_INTEGER : Number.MAX_SAFE_INTEGER
}

/** The integer after this one. */
export function successorOf(value: Integer): Integer {
  return typeof value === 'number' && value < Number.MAX_SAFE_INTEGER ? value + 1 : integerOf(BigInt(value) + 1n)
}

/** For sorting, the lesser first. Infinite ones may be among them. */
export function compareIntegers(left: Integer, right: Integer): number {
  if (left < right) return -1
  return left > right ? 1 : 0
}

/** Digits in a row from which on an integer may be beyond 2^53-1. */
const LONG = 16
const ZERO = 0x30
const NINE = 0x39

const isDigit = (code: number): boolean => code >= ZERO && code <= NINE

/** Whether so many digits stand in a row anywhere, also within a string. It looks at every sixteenth place: nearly all texts are passed at once. */
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

/** Reads JSON of our own, such as a stored event: as `JSON.parse`, with integers beyond 2^53-1 as bigints. */
export function parseExact(text: string): JsonValue {
  return holdsLongNumber(text) ? readExact(text) : (JSON.parse(text) as JsonValue)
}

/**
 * What `JSON.parse` gives, with integers beyond 2^53-1 as bigints. Slower by far: for texts that are known to hold such, or to be odd otherwise.
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

/** As `JSON.stringify`, also of what holds bigints: these are written as the integers that they are. */
export function writeJson(value: unknown): string {
  try {
    return JSON.stringify(value)
  } catch (error) {
    // That is what it says of a bigint, and of what refers to itself, which nothing does that is answered.
    if (!(error instanceof TypeError)) throw error
    return writeExact(value) ?? 'null'
  }
}

/** Undefined for what JSON does not write. */
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
