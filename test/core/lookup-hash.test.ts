import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { lookupHash, plainLookupEntry, readLookupHash, readPlainLookupEntry } from '../../src/core/lookup-hash.ts'
import type { Medium } from '../../src/core/threepid.ts'

/** Published with the identity service API, "Association lookup"; the pepper is `matrixrocks`. */
const VECTORS: readonly (readonly [string, Medium, string])[] = [
  ['alice@example.com', 'email', '4kenr7N9drpCJ4AfalmlGQVsOn3o2RHjkADUpXJWZUc'],
  ['bob@example.com', 'email', 'LJwSazmv46n0hlMlsb_iYxI0_HXEqy_yj6Jm636cdT8'],
  ['18005552067', 'msisdn', 'nlo35_T5fzSGZzJApqu8lgIudJvmOQtDaHtr-I4rU7I'],
]

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

describe('identity service API, "Association lookup"', () => {
  it.each(VECTORS)('sha256 of %s %s', (address, medium, hash) => {
    expect(lookupHash(address, medium, 'matrixrocks')).toBe(hash)
  })

  it('none is the address, a space, and the medium', () => {
    expect(plainLookupEntry('bob@example.com', 'email')).toBe('bob@example.com email')
    expect(readPlainLookupEntry('bob@example.com email')).toEqual({ address: 'bob@example.com', medium: 'email' })
    expect(readPlainLookupEntry('two words email')).toEqual({ address: 'two words', medium: 'email' })
    for (const entry of ['', ' ', 'email', ' email']) expect(readPlainLookupEntry(entry)).toBeUndefined()
  })

  it('an entry that was hashed has one spelling', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 32, maxLength: 32 }), fc.constantFrom(...ALPHABET), (array, last) => {
        const entry = Buffer.from(array).toString('base64url')
        const other = entry.slice(0, -1) + last
        const bytes = Buffer.alloc(64)
        expect(readLookupHash(other, bytes, 32)).toBe(Buffer.from(other, 'base64url').toString('base64url') === other)
        expect([readLookupHash(entry, bytes), readLookupHash(entry, bytes, 32)]).toEqual([true, true])
        expect(bytes).toEqual(Buffer.concat([array, array]))
      }),
    )
    const [, , hash] = VECTORS[0]!
    for (const entry of [
      '',
      hash.slice(1),
      `${hash}A`,
      `${hash}=`,
      `${hash}\n`,
      hash.replace('4', '+'),
      hash.replace('4', 'é'),
      hash.replace('4', 'Ĵ'),
      hash.replace('4', '='),
    ])
      expect(readLookupHash(entry, Buffer.alloc(32))).toBe(false)
  })
})
