import { walk } from 'canonical-json'
import type { JsonValue } from '../../src/core/json.ts'

/**
 * Canonical JSON by another encoder. It knows no bigints: each is written as a text that stands nowhere else, which is then replaced by
 * its digits.
 */
export function encodeIndependently(value: JsonValue): string {
  let text = ''
  walk(marked(value), (chunk) => (text += chunk), byCodePoint)
  return text.replace(/"\uE123(-?[0-9]+)\uE123"/g, '$1')
}

const codePoints = (text: string) => [...text].map((character) => character.codePointAt(0)!)

function byCodePoint(left: string, right: string): number {
  const [one, other] = [codePoints(left), codePoints(right)]
  const at = one.findIndex((value, index) => value !== other[index])
  return at === -1 ? one.length - other.length : one[at]! - (other[at] ?? -1)
}

function marked(value: JsonValue): JsonValue {
  if (typeof value === 'bigint') return `\uE123${value}\uE123`
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(marked)
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, marked(each)]))
}

/** The value as text, with spaces where they may stand, written by nobody's encoder but `JSON.stringify`. */
export function writeSpaced(value: JsonValue, space: string): string {
  const text = JSON.stringify(marked(value), null, space) ?? 'null'
  return text.replace(/"\uE123(-?[0-9]+)\uE123"/g, '$1')
}
