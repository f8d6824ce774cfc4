import fc from 'fast-check'
import nacl from 'tweetnacl'
import { describe, expect, test } from 'vitest'
import { encodeBase64 } from '../../../src/core/base64.ts'
import { type Ed25519, nodeEd25519, sodiumEd25519 } from '../../../src/core/signing/ed25519.ts'
import { signingKeyFromSeed, verifySignature } from '../../../src/core/signing/key.ts'

const seeds = fc.uint8Array({ minLength: 32, maxLength: 32 })
const messages = fc.uint8Array({ maxLength: 300 })
const native: Ed25519[] = sodiumEd25519 ? [nodeEd25519, sodiumEd25519] : [nodeEd25519]

test('the native binding is here to be tested', () => {
  // Its prebuilt binaries cover every platform the tests run on; without it the next tests would compare less.
  expect(sodiumEd25519).toBeDefined()
})

test('every implementation makes the same keys and the same signatures', () => {
  fc.assert(
    fc.property(seeds, messages, (seed, message) => {
      const pair = nacl.sign.keyPair.fromSeed(seed)
      const signature = nacl.sign.detached(message, pair.secretKey)
      for (const ed25519 of native) {
        const own = ed25519.keyPair(seed)
        expect(own.publicKey).toEqual(Buffer.from(pair.publicKey))
        expect(own.sign(message)).toEqual(Buffer.from(signature))
        expect(ed25519.verifier(pair.publicKey)(message, signature)).toBe(true)
      }
    }),
    { numRuns: 20 },
  )
})

test('every implementation refuses what was altered', () => {
  const flip = (bytes: Uint8Array, at: number) =>
    bytes.map((byte, index) => (index === at % bytes.length ? byte ^ 1 : byte))
  fc.assert(
    fc.property(seeds, messages, fc.nat(), (seed, message, at) => {
      const pair = nacl.sign.keyPair.fromSeed(seed)
      const signature = nacl.sign.detached(message, pair.secretKey)
      const longer = Uint8Array.of(...message, 0)
      for (const ed25519 of native) {
        const verify = ed25519.verifier(pair.publicKey)
        expect(verify(message, flip(signature, at))).toBe(false)
        expect(verify(longer, signature)).toBe(false)
        expect(verify(message, signature.subarray(0, 63))).toBe(false)
        expect(ed25519.verifier(flip(pair.publicKey, at))(message, signature)).toBe(false)
      }
    }),
    { numRuns: 20 },
  )
})

describe('signingKeyFromSeed', () => {
  const key = signingKeyFromSeed('ed25519:a', Buffer.alloc(32, 7))

  test('signs text as its UTF-8 bytes', () => {
    const signature = key.sign('größer 😀')
    expect(key.sign(Buffer.from('größer 😀'))).toBe(signature)
    expect(signature).toMatch(/^[A-Za-z0-9+/]{86}$/)
    expect(verifySignature(key.publicKey, 'größer 😀', signature)).toBe(true)
    expect(verifySignature(key.publicKey, 'grösser 😀', signature)).toBe(false)
  })

  test('refuses a seed of another length', () => {
    expect(() => signingKeyFromSeed('ed25519:a', Buffer.alloc(31))).toThrow(RangeError)
  })

  test.each([
    ['a key that is not base64', '!'.repeat(43), undefined],
    ['a key of another length', encodeBase64(Buffer.alloc(31)), undefined],
    ['a key that is no point of the curve', encodeBase64(Buffer.alloc(32, 0xff)), undefined],
    ['a signature that is not base64', undefined, '?'.repeat(86)],
    ['a signature of another length', undefined, encodeBase64(Buffer.alloc(65))],
    ['an empty signature', undefined, ''],
  ])('verifySignature answers false to %s', (_, publicKey, signature) => {
    expect(verifySignature(publicKey ?? key.publicKey, 'text', signature ?? key.sign('text'))).toBe(false)
  })
})
