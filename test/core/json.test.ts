import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { JsonTooDeepError, MAX_DEPTH, NotJsonError, readJson } from '../../src/core/json.ts'
import { encodeCanonical } from '../../src/core/signing/canonical-json.ts'
import { cpuMs } from '../support/slowness.ts'
import { json } from './json-values.ts'

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
