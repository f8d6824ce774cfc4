import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { decodeBase64, encodeBase64 } from '../../../src/core/base64.ts'
import type { Pdu } from '../../../src/core/event/format.ts'
import { isSignedBy } from '../../../src/core/event/signers.ts'
import type { ServerName } from '../../../src/core/ids.ts'
import { type JsonObject, type JsonOffence, readJson } from '../../../src/core/json.ts'
import { roomVersion } from '../../../src/core/room-version.ts'
import { encodeCanonical } from '../../../src/core/signing/canonical-json.ts'
import { nodeEd25519, sodiumEd25519 } from '../../../src/core/signing/ed25519.ts'
import { contentHash, signEvent } from '../../../src/core/signing/event-hash.ts'
import { signJson, verifyJson } from '../../../src/core/signing/json-signature.ts'
import { signingKeyFromSeed } from '../../../src/core/signing/key.ts'

interface Vector {
  readonly clause: string
}

interface Signing extends Vector {
  readonly seed: string
  readonly server: string
  readonly keyId: string
}

function vectors<T extends Vector>(name: string): T[] {
  return JSON.parse(readFileSync(new URL(`../../vectors/${name}.json`, import.meta.url), 'utf8'))
}

const keyOf = ({ keyId, seed }: Signing) => signingKeyFromSeed(keyId, decodeBase64(seed)!)

describe('base64', () => {
  test.each(vectors<Vector & { text: string; base64: string }>('base64'))('$clause: $text', ({ text, base64 }) => {
    expect(encodeBase64(Buffer.from(text))).toBe(base64)
    expect(decodeBase64(base64)?.toString()).toBe(text)
  })
})

describe('canonical JSON', () => {
  test.each(vectors<Vector & { input: string; canonical: string; offence?: JsonOffence }>('canonical-json'))(
    '$clause: $input',
    ({ input, canonical, offence }) => {
      const read = readJson(input)
      expect(read.offence).toBe(offence)
      expect(encodeCanonical(read.value)).toBe(canonical)
    },
  )
})

describe.each([
  ['node:crypto', nodeEd25519],
  ['sodium-native', sodiumEd25519],
])('ed25519 by %s', (_, ed25519) => {
  type Case = Vector & { seed: string; publicKey: string; message: string; signature: string }
  test.skipIf(!ed25519).each(vectors<Case>('ed25519'))('$clause', ({ seed, publicKey, message, signature }) => {
    const hex = (text: string) => Buffer.from(text, 'hex')
    const pair = ed25519!.keyPair(hex(seed))
    expect(pair.publicKey.toString('hex')).toBe(publicKey)
    expect(pair.sign(hex(message)).toString('hex')).toBe(signature)
    expect(ed25519!.verifier(hex(publicKey))(hex(message), hex(signature))).toBe(true)
  })
})

describe('signing of JSON', () => {
  type Case = Signing & { input: JsonObject; signed: JsonObject }
  test.each(vectors<Case>('json-signing'))('$clause: $input', (vector) => {
    const key = keyOf(vector)
    const signed = signJson(vector.input, vector.server, key)
    expect(signed).toEqual(vector.signed)
    expect(verifyJson(signed, vector.server, vector.keyId, key.publicKey)).toBe(true)
  })
})

describe('signing of events', () => {
  type Case = Signing & { roomVersion: string; input: Pdu; sha256: string; signature: string }
  test.each(vectors<Case>('event-signing'))('$clause', (vector) => {
    const version = roomVersion(vector.roomVersion)!
    const key = keyOf(vector)
    expect(contentHash(vector.input)).toBe(vector.sha256)
    const signed = signEvent(version, { ...vector.input, hashes: { sha256: vector.sha256 } }, vector.server, key)
    expect(signed.signatures).toEqual({ [vector.server]: { [vector.keyId]: vector.signature } })
    const keys = [{ keyId: vector.keyId, publicKey: key.publicKey, validUntilTs: Number.MAX_SAFE_INTEGER }]
    expect(isSignedBy(version, signed, vector.server as ServerName, keys)).toBe(true)
  })
})
