import { describe, expect, test } from 'vitest'
import { buildEvent } from '../../../src/core/event/build.ts'
import { isSignedBy, requiredSigners, signatureKeyIds, type VerifyKey } from '../../../src/core/event/signers.ts'
import type { ServerName } from '../../../src/core/ids.ts'
import { ROOM_VERSIONS, roomVersion } from '../../../src/core/room-version.ts'
import { signEvent, signedEventText } from '../../../src/core/signing/event-hash.ts'
import { signingKeyFromSeed } from '../../../src/core/signing/key.ts'
import { draftFor, KEY, KEYS, ORIGIN } from './drafts.ts'

const OTHER = 'other.example' as ServerName
const SECOND = signingKeyFromSeed('ed25519:second', Buffer.alloc(32, 2))
const known = (key: typeof KEY, validUntilTs = Number.MAX_SAFE_INTEGER): VerifyKey => ({
  keyId: key.keyId,
  publicKey: key.publicKey,
  validUntilTs,
})

describe.each(ROOM_VERSIONS)('room version $id', (version) => {
  const { pdu } = buildEvent(version, draftFor(version), ORIGIN, KEY)

  test('a signature by one of the keys of that server', () => {
    expect(isSignedBy(version, pdu, ORIGIN, KEYS)).toBe(true)
    expect(isSignedBy(version, pdu, ORIGIN, KEYS, signedEventText(version, pdu))).toBe(true)
    expect(isSignedBy(version, pdu, ORIGIN, [])).toBe(false)
    expect(isSignedBy(version, pdu, OTHER, KEYS)).toBe(false)
    expect(isSignedBy(version, pdu, ORIGIN, [{ ...known(SECOND), keyId: KEY.keyId }])).toBe(false)
    expect(isSignedBy(version, { ...pdu, depth: 9 }, ORIGIN, KEYS)).toBe(false)
  })

  test('every known key that signed must have signed validly; unknown ones are skipped', () => {
    const twice = signEvent(version, pdu, ORIGIN, SECOND)
    const spoilt = { ...pdu, signatures: { [ORIGIN]: { ...pdu.signatures[ORIGIN], [SECOND.keyId]: 'AAAA' } } }
    const both = [...KEYS, known(SECOND)]
    expect(isSignedBy(version, twice, ORIGIN, both)).toBe(true)
    expect(isSignedBy(version, twice, ORIGIN, [known(SECOND)])).toBe(true)
    expect(isSignedBy(version, spoilt, ORIGIN, both)).toBe(false)
    expect(isSignedBy(version, spoilt, ORIGIN, KEYS)).toBe(true)
  })

  test('from version 5 on a key counts until its time (room version 5, "Signing key validity period")', () => {
    const ts = Number(pdu.origin_server_ts)
    expect(isSignedBy(version, pdu, ORIGIN, [known(KEY, ts)])).toBe(true)
    expect(isSignedBy(version, pdu, ORIGIN, [known(KEY, ts - 1)])).toBe(Number(version.id) < 5)
  })

  test('key ids are own, of ed25519, and few', () => {
    const under = (keys: { [keyId: string]: string }) =>
      signatureKeyIds({ ...pdu, signatures: { [ORIGIN]: keys } }, ORIGIN)
    expect(under({ 'ed25519:a': 'x', 'rsa:b': 'x', ed25519: 'x', 'ed25519:n\0l': 'x', ['__proto__']: 'x' })).toEqual([
      'ed25519:a',
    ])
    expect(under({ [`ed25519:${'a'.repeat(248)}`]: 'x' })).toEqual([])
    expect(under(Object.fromEntries(Array.from({ length: 50 }, (_, n) => [`ed25519:${n}`, 'x'])))).toHaveLength(10)
    expect(signatureKeyIds(pdu, '__proto__' as ServerName)).toEqual([])
    expect(signatureKeyIds(pdu, 'constructor' as ServerName)).toEqual([])
  })
})

test('an authoriser who is no user asks nobody, and stays for rule 4.2 to refuse', () => {
  const version = roomVersion('10')!
  for (const authoriser of ['', 'x', '@x', '@x:evil name', 5, null]) {
    const content = { membership: 'join', join_authorised_via_users_server: authoriser }
    const { pdu } = buildEvent(version, draftFor(version, { type: 'm.room.member', content }), ORIGIN, KEY)
    expect(requiredSigners(version, pdu)).toEqual([ORIGIN])
  }
})
