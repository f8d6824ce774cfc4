import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type JsonValue, NotJsonError, readExactJson, readJson } from '../../src/core/json.ts'
import {
  compareIntegers,
  integerOf,
  MAX_INTEGER_DIGITS,
  parseExact,
  readExact,
  successorOf,
  writeJson,
} from '../../src/core/large-integers.ts'
import { encodeCanonical } from '../../src/core/signing/canonical-json.ts'
import { encodeIndependently, writeSpaced } from '../support/independent-json.ts'

/** Beyond what a double counts to, and at its edges. */
const large = fc
  .oneof(
    fc.bigInt(),
    fc.bigInt({ min: -(2n ** 54n), max: 2n ** 54n }),
    fc.bigInt({ min: 2n ** 63n - 2n, max: 2n ** 64n }),
    fc.bigInt({ min: 10n ** 400n, max: 10n ** 401n }),
    fc.constantFrom(2n ** 53n - 1n, 2n ** 53n, -(2n ** 53n)),
  )
  .map(integerOf)

const text = fc.oneof(
  fc.string(),
  fc.constantFrom('12345678901234567890', '9007199254740993,', '"1234567890123456789":', '\\', '\ud83d\ude00', ''),
)

const jsonWith = (...floats: number[]) =>
  fc.letrec<{ value: JsonValue }>((tie) => ({
    value: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      large,
      fc.constantFrom<JsonValue>(null, true, false, ...floats),
      text,
      fc.array(tie('value'), { maxLength: 5 }),
      fc.dictionary(fc.oneof(text, fc.constantFrom('__proto__', '1', '10')), tie('value'), {
        maxKeys: 5,
        noNullPrototype: true,
      }),
    ),
  })).value

const json = jsonWith(0.5, 1e300, -0.25)

describe('B10: integers of any size', () => {
  test('B10: are read as they are, however the text is spaced', () => {
    fc.assert(
      fc.property(json, fc.constantFrom('', ' ', '\t\n'), (value, space) => {
        const written = writeSpaced(value, space)
        expect(readExact(written)).toEqual(value)
        expect(readExactJson(written).value).toEqual(value)
        expect(parseExact(written)).toEqual(value)
      }),
      { numRuns: 500 },
    )
  })

  test('B10: are encoded as an independent encoder does, and read again as they were', () => {
    fc.assert(
      fc.property(jsonWith(), (value) => {
        const written = encodeCanonical(value)
        expect(written).toBe(encodeIndependently(value))
        expect(encodeCanonical(readExactJson(written).value)).toBe(written)
      }),
      { numRuns: 500 },
    )
  })

  test('B10: are in what clients are sent', () => {
    fc.assert(
      fc.property(json, (value) => {
        expect(readExact(writeJson({ content: value, absent: undefined }))).toEqual({ content: value })
      }),
    )
  })

  test('B10: are noted as an offence, and read as doubles by who does not ask for more', () => {
    fc.assert(
      fc.property(large, (integer) => {
        const { value, offence } = readJson(`[${integer}]`)
        expect(offence).toBe(typeof integer === 'bigint' ? 'integer-range' : undefined)
        const [double] = value as number[]
        expect(Number.isFinite(double)).toBe(true)
        if (Number.isFinite(Number(integer))) expect(double).toBe(Number(integer))
      }),
    )
  })

  test('B10: compare and count by value', () => {
    fc.assert(
      fc.property(large, large, (left, right) => {
        const [one, other] = [BigInt(left), BigInt(right)]
        expect(compareIntegers(left, right)).toBe(one < other ? -1 : one > other ? 1 : 0)
        expect(left === right).toBe(one === other)
        expect(successorOf(left)).toBe(integerOf(one + 1n))
      }),
    )
  })

  test('B10: end somewhere', () => {
    expect(readExactJson('9'.repeat(MAX_INTEGER_DIGITS)).value).toBe(10n ** BigInt(MAX_INTEGER_DIGITS) - 1n)
    expect(() => readExactJson('9'.repeat(MAX_INTEGER_DIGITS + 1))).toThrow(NotJsonError)
    expect(() => readExactJson('[1e400]')).toThrow(NotJsonError)
  })

  test('B10: floats are no integers, however great: they are written as Python does', () => {
    const { value } = readExactJson('[1e16,1e20,-1.5e300,9007199254740994.0,123456789012345680000.0,1e-5,0.1]')
    expect(encodeCanonical(value)).toBe('[1e+16,1e+20,-1.5e+300,9007199254740994.0,1.2345678901234568e+20,1e-05,0.1]')
  })
})
