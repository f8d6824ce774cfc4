import { expect, test } from 'vitest'
import {
  brokenPackages,
  loadWitnesses,
  OWN_PACKAGES,
  signingDisagreement,
} from '../../../src/core/signing/agreement.ts'
import { nodeEd25519, sodiumEd25519 } from '../../../src/core/signing/ed25519.ts'

test('D4: the two implementations agree with the published vectors', async () => {
  expect(brokenPackages(OWN_PACKAGES, await loadWitnesses())).toEqual([])
  expect(await signingDisagreement()).toBeUndefined()
  expect(OWN_PACKAGES.signer).toBe('sodium-native')
  expect([nodeEd25519, sodiumEd25519]).not.toContain(undefined)
})

test('D4: the package that comes to something else is named', async () => {
  const witness = await loadWitnesses()
  const wrongSignature = {
    ...OWN_PACKAGES,
    keyPair: (seed: Uint8Array) => ({ ...OWN_PACKAGES.keyPair(seed), sign: () => 'AA' }),
  }
  expect(brokenPackages(wrongSignature, witness)).toEqual(['sodium-native'])
  expect(brokenPackages({ ...OWN_PACKAGES, verify: () => true }, witness)).toEqual(['sodium-native'])
  expect(brokenPackages({ ...OWN_PACKAGES, verify: () => false }, witness)).toEqual(['sodium-native'])
  // What the default order of JavaScript makes of keys.
  expect(brokenPackages({ ...OWN_PACKAGES, encode: (value) => JSON.stringify(value) }, witness)).toEqual([
    'the canonical JSON of Hearth itself',
  ])
  const throws = () => {
    throw new Error('no binary')
  }
  expect(brokenPackages(OWN_PACKAGES, { ...witness, keyPair: throws, encode: throws })).toEqual([
    'canonical-json',
    'tweetnacl',
  ])
})
