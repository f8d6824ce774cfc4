import fc from 'fast-check'
import type { JsonValue } from '../../src/core/json.ts'

/** Keys that collide, look like integers, or lie on both sides of the surrogates. */
export function key(): fc.Arbitrary<string> {
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

/** JSON that canonical JSON can write. */
export function json(): fc.Arbitrary<JsonValue> {
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
