import { describe, expect, it } from 'vitest'
import { lookupHash, plainLookupEntry, readPlainLookupEntry } from '../../src/core/lookup-hash.ts'
import type { Medium } from '../../src/core/threepid.ts'

/** Published with the identity service API, "Association lookup"; the pepper is `matrixrocks`. */
const VECTORS: readonly (readonly [string, Medium, string])[] = [
  ['alice@example.com', 'email', '4kenr7N9drpCJ4AfalmlGQVsOn3o2RHjkADUpXJWZUc'],
  ['bob@example.com', 'email', 'LJwSazmv46n0hlMlsb_iYxI0_HXEqy_yj6Jm636cdT8'],
  ['18005552067', 'msisdn', 'nlo35_T5fzSGZzJApqu8lgIudJvmOQtDaHtr-I4rU7I'],
]

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
})
