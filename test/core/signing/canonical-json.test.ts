import { walk } from 'canonical-json'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { JsonTooDeepError, type JsonValue, MAX_DEPTH, readJson } from '../../../src/core/json.ts'
import { compareCodePoints, encodeCanonical } from '../../../src/core/signing/canonical-json.ts'
import { json, key } from '../json-values.ts'

describe('encodeCanonical', () => {
  test.each([
    ['{"10":1,"9":2,"1":3}', '{"1":3,"10":1,"9":2}'],
    ['{"\u{10000}":1,"\uffff":2,"\ue000":3,"a":4}', '{"a":4,"\ue000":3,"\uffff":2,"\u{10000}":1}'],
    [
      '{"b\u{10000}":1,"b\uffff":2,"c":{"\u{10000}":1,"\uffff":2},"a":0}',
      '{"a":0,"b\uffff":2,"b\u{10000}":1,"c":{"\uffff":2,"\u{10000}":1}}',
    ],
    ['"\\u0000\\u0008\\u001F\\u007f\\u2028\\/\\"\\\\"', '"\\u0000\\b\\u001f\u007f\u2028/\\"\\\\"'],
    ['{"b":{},"a":[[],{}],"":null}', '{"":null,"a":[[],{}],"b":{}}'],
    ['[-0, 1e10, 1.5]', '[0,10000000000,1.5]'],
    ['"\\ud800"', '"\\ud800"'],
  ])('%s is written %s', (text, canonical) => {
    expect(encodeCanonical(readJson(text).value)).toBe(canonical)
  })

  test('agrees with an independent encoder', () => {
    fc.assert(
      fc.property(json(), (value) => {
        expect(encodeCanonical(value)).toBe(oracle(value))
      }),
      { numRuns: 500 },
    )
  })

  test('is idempotent and keeps the value', () => {
    fc.assert(
      fc.property(json(), (value) => {
        const text = encodeCanonical(value)
        expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(value)))
        expect(encodeCanonical(readJson(text).value)).toBe(text)
      }),
    )
  })

  test('does not depend on the order in which keys were set', () => {
    fc.assert(
      fc.property(fc.uniqueArray(key(), { maxLength: 40 }), fc.infiniteStream(fc.nat()), (keys, weights) => {
        const shuffled = keys
          .map((name) => ({ name, weight: weights.next().value }))
          .sort((a, b) => a.weight - b.weight)
        const left = Object.fromEntries(keys.map((name) => [name, 1]))
        const right = Object.fromEntries(shuffled.map(({ name }) => [name, 1]))
        expect(encodeCanonical(left)).toBe(encodeCanonical(right))
        expect(encodeCanonical(left)).toBe(oracle(left))
      }),
    )
  })

  test('odd keys at every level cost no more than their length', () => {
    let value: JsonValue = 1
    for (let depth = 0; depth < MAX_DEPTH; depth++) value = { a: value, '\u{10000}': depth }
    expect(encodeCanonical(value)).toBe(oracle(value))
  })

  test('refuses what has no end and what is not JSON', () => {
    const cycle: JsonValue[] = []
    cycle.push(cycle)
    expect(() => encodeCanonical(cycle)).toThrow(JsonTooDeepError)
    expect(() => encodeCanonical([Number.NaN])).toThrow(TypeError)
  })
})

function oracle(value: JsonValue): string {
  let text = ''
  const byCodePoint = (left: string, right: string) => compareArrays(codePoints(left), codePoints(right))
  walk(value, (chunk) => (text += chunk), byCodePoint)
  return text
}

const codePoints = (text: string) => [...text].map((character) => character.codePointAt(0)!)

function compareArrays(left: number[], right: number[]): number {
  const at = left.findIndex((value, index) => value !== right[index])
  return at === -1 ? left.length - right.length : left[at]! - (right[at] ?? -1)
}

test('compareCodePoints orders as arrays of code points do', () => {
  fc.assert(
    fc.property(key(), key(), (left, right) => {
      expect(Math.sign(compareCodePoints(left, right))).toBe(
        Math.sign(compareArrays(codePoints(left), codePoints(right))),
      )
    }),
  )
})
