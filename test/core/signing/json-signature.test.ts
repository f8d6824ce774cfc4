import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { JsonObject } from '../../../src/core/json.ts'
import { encodeCanonical } from '../../../src/core/signing/canonical-json.ts'
import { signatureOf, signedText, signJson, verifyJson } from '../../../src/core/signing/json-signature.ts'
import { signingKeyFromSeed } from '../../../src/core/signing/key.ts'

const key = signingKeyFromSeed('ed25519:a', Buffer.alloc(32, 1))
const other = signingKeyFromSeed('ed25519:b', Buffer.alloc(32, 2))

const objects = fc.dictionary(
  fc.string(),
  fc.oneof(fc.integer(), fc.string(), fc.dictionary(fc.string(), fc.boolean())),
  {
    noNullPrototype: true,
  },
) as fc.Arbitrary<JsonObject>

test('what was signed verifies, whatever is added to `unsigned` or signed besides', () => {
  fc.assert(
    fc.property(objects, fc.constantFrom('a.org', '__proto__', 'constructor'), (object, server) => {
      const { signatures, unsigned, ...rest } = object
      const signed = signJson(rest, server, key)
      expect(verifyJson(signed, server, key.keyId, key.publicKey)).toBe(true)
      const passedOn = signJson({ ...signJson(signed, 'b.org', other), unsigned: { age: 1 } }, server, other)
      expect(verifyJson(passedOn, server, key.keyId, key.publicKey)).toBe(true)
      expect(verifyJson(passedOn, server, other.keyId, other.publicKey)).toBe(true)
      expect(verifyJson(passedOn, 'b.org', other.keyId, other.publicKey)).toBe(true)
      expect(signedText(passedOn)).toBe(encodeCanonical(rest))
    }),
    { numRuns: 50 },
  )
})

test('a change, another key or another name does not verify', () => {
  const signed = signJson({ a: 1 }, 'a.org', key)
  expect(verifyJson({ ...signed, a: 2 }, 'a.org', key.keyId, key.publicKey)).toBe(false)
  expect(verifyJson({ ...signed, b: 1 }, 'a.org', key.keyId, key.publicKey)).toBe(false)
  expect(verifyJson(signed, 'a.org', key.keyId, other.publicKey)).toBe(false)
  expect(verifyJson(signed, 'a.org', 'ed25519:b', key.publicKey)).toBe(false)
  expect(verifyJson(signed, 'b.org', key.keyId, key.publicKey)).toBe(false)
})

test('an own `__proto__` is signed like any key', () => {
  const object = JSON.parse('{"__proto__":{"a":1},"b":2}') as JsonObject
  const signed = signJson(object, 'a.org', key)
  expect(signedText(signed)).toBe('{"__proto__":{"a":1},"b":2}')
  expect(verifyJson(signJson({ b: 2 }, 'a.org', key), 'a.org', key.keyId, key.publicKey)).toBe(true)
  expect(verifyJson({ ...signed, ['__proto__']: { a: 2 } }, 'a.org', key.keyId, key.publicKey)).toBe(false)
})

describe('signatureOf', () => {
  test.each([undefined, null, 'x', [], { 'a.org': null }, { 'a.org': ['x'] }, { 'a.org': { 'ed25519:a': 5 } }, {}])(
    'finds none in %j',
    (signatures) => {
      const object = signatures === undefined ? {} : { signatures }
      expect(signatureOf(object as JsonObject, 'a.org', 'ed25519:a')).toBeUndefined()
      expect(verifyJson(object as JsonObject, 'a.org', 'ed25519:a', key.publicKey)).toBe(false)
    },
  )

  test('finds nothing that only a prototype has', () => {
    expect(signatureOf({ signatures: {} }, '__proto__', 'toString')).toBeUndefined()
    expect(signatureOf({ signatures: {} }, 'constructor', 'name')).toBeUndefined()
    expect(signatureOf({ signatures: { 'a.org': {} } }, 'a.org', '__proto__')).toBeUndefined()
  })
})
