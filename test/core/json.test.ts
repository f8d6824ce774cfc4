import { walk } from 'canonical-json'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  compareCodePoints,
  encodeCanonical,
  JsonTooDeepError,
  type JsonValue,
  MAX_DEPTH,
  NotJsonError,
  readJson,
} from '../../src/core/json.ts'
import { cpuMs } from '../support/slowness.ts'

const offenceOf = (text: string) => readJson(text).offence

describe('readJson', () => {
  test.each([
    ['[1.0]', 'float'],
    ['{"a":1e2}', 'float'],
    ['[1E2]', 'float'],
    ['[0.5]', 'float'],
    ['[-0]', 'negative-zero'],
    ['[-0.0]', 'float'],
    ['-0', 'negative-zero'],
    ['9007199254740992', 'integer-range'],
    ['[-9007199254740992]', 'integer-range'],
    ['{"depth":9223372036854775807}', 'integer-range'],
    ['[9007199254740991,-9007199254740991,0,-1,10]', undefined],
    ['"\\ud800"', 'lone-surrogate'],
    ['{"\\udc00":1}', 'lone-surrogate'],
    ['["\\udc00\\ud800"]', 'lone-surrogate'],
    ['"\ud800"', 'lone-surrogate'],
    ['{"a":{"b":["\ud83d"]}}', 'lone-surrogate'],
    ['"\\ud83d\\ude00"', undefined],
    ['"\\\\ud800"', undefined],
    ['"😀"', undefined],
    ['"1.0 -0 1e5 [[[ {{{"', undefined],
    ['"\\" 1.5"', undefined],
    ['{"a\\\\":"\\\\","b":1.5}', 'float'],
    ['"\\u0000"', undefined],
  ])('%s has the offence %s', (text, offence) => {
    expect(offenceOf(text)).toBe(offence)
  })

  test.each([
    '',
    '{',
    '{"a":1',
    '"\\',
    '"',
    '[1,]',
    '\ufeff{}',
    'NaN',
    '01',
    '[1e400]',
    '[1.5,1e400]',
    `[${'9'.repeat(5000)}]`,
    "{'a':1}",
  ])('%j is not JSON', (text) => {
    expect(() => readJson(text)).toThrow(NotJsonError)
  })

  test('bytes must be UTF-8', () => {
    expect(readJson(Buffer.from('{"ä":"😀"}')).value).toEqual({ ä: '😀' })
    expect(() => readJson(Buffer.from([0x22, 0xff, 0x22]))).toThrow(NotJsonError)
    expect(() => readJson(Buffer.from([0x22, 0xc0, 0xaf, 0x22]))).toThrow(NotJsonError)
  })

  test('nesting is allowed up to the limit and no further', () => {
    const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth)
    expect(() => readJson(nested(MAX_DEPTH))).not.toThrow()
    expect(() => readJson(nested(MAX_DEPTH + 1))).toThrow(JsonTooDeepError)
    expect(() => readJson(`${'{"a":'.repeat(MAX_DEPTH + 1)}1${'}'.repeat(MAX_DEPTH + 1)}`)).toThrow(JsonTooDeepError)
    expect(() => readJson(nested(MAX_DEPTH + 1), MAX_DEPTH + 1)).not.toThrow()
    expect(() => readJson(`[${'[],'.repeat(1000)}[]]`)).not.toThrow()
  })

  test('a hostile body is refused at once', () => {
    const bodies = ['['.repeat(200_000), '{"a":'.repeat(200_000), `"${'\\'.repeat(200_000)}`, '\\"'.repeat(100_000)]
    const errors = [JsonTooDeepError, JsonTooDeepError, NotJsonError, NotJsonError]
    const took = cpuMs(() => {
      for (const [index, body] of bodies.entries()) expect(() => readJson(body)).toThrow(errors[index])
    })
    expect(took).toBeLessThan(20)
  })

  test('`__proto__` stays an own key', () => {
    const { value } = readJson('{"__proto__":{"admin":true},"a":1}')
    expect(Object.keys(value as object)).toEqual(['__proto__', 'a'])
    expect(encodeCanonical(value)).toBe('{"__proto__":{"admin":true},"a":1}')
  })

  test('of a repeated key the last value stands', () => {
    expect(readJson('{"a":1,"\\u0061":2}').value).toEqual({ a: 2 })
  })

  test('agrees with JSON.parse, and finds no offence in what JSON.stringify wrote of integers', () => {
    fc.assert(
      fc.property(json(), (value) => {
        const text = JSON.stringify(value)
        expect(readJson(text)).toEqual({ value: JSON.parse(text), offence: undefined })
        expect(readJson(JSON.stringify(value, null, 3)).offence).toBeUndefined()
      }),
    )
  })

  test('finds an offence wherever it stands', () => {
    fc.assert(
      fc.property(
        json(),
        json(),
        fc.constantFrom('1.0', '-0', '1e3', '9007199254740993', '"\\udfff"'),
        (before, after, bad) => {
          expect(offenceOf(`[${JSON.stringify(before)},${bad},${JSON.stringify(after)}]`)).toBeDefined()
        },
      ),
    )
  })
})

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

/** Keys that collide, look like integers, or lie on both sides of the surrogates. */
function key(): fc.Arbitrary<string> {
  return fc.oneof(
    fc.constantFrom(
      '',
      '__proto__',
      'constructor',
      'toString',
      'a',
      'b',
      '1',
      '9',
      '10',
      '\u{10000}',
      '\ue000',
      '\uffff',
      '"',
      '\\',
      '\0',
    ),
    fc.string({ unit: 'binary', maxLength: 6 }),
    fc.nat().map(String),
  )
}

function json(): fc.Arbitrary<JsonValue> {
  return fc.letrec<{ value: JsonValue }>((tie) => ({
    value: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      fc.constantFrom<JsonValue>(null, true, false),
      fc.maxSafeInteger().filter((number) => !Object.is(number, -0)),
      fc.string({ unit: 'binary' }),
      fc.array(tie('value'), { maxLength: 5 }),
      fc.array(fc.tuple(key(), tie('value')), { maxLength: 30 }).map((entries) => Object.fromEntries(entries)),
    ),
  })).value
}
