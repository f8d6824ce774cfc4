import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { decodeBase64, encodeBase64 } from '../../core/base64.ts'
import { signingKeyFromSeed } from '../../core/signing/key.ts'
import type { IdentityKeyRing, OldKey } from '../../domain/identity/keys.ts'
import { readSecret, writeSecret } from './secret-file.ts'

const NAME = 'identity.key'
/** The key in use, first: `ed25519 <version> <seed>`. */
const CURRENT = /^ed25519 ([A-Za-z0-9_]+) ([A-Za-z0-9+/]{43})$/
/** A key that was in use: `old ed25519 <version> <public key>`. */
const OLD = /^old ed25519 ([A-Za-z0-9_]+) ([A-Za-z0-9+/]{43})$/

export function identityKeyPath(dataDir: string): string {
  return join(dataDir, NAME)
}

/** The identity service's keys, current and old; the first key is made at the first start. */
export async function loadIdentityKeys(dataDir: string): Promise<IdentityKeyRing> {
  const path = identityKeyPath(dataDir)
  if (!existsSync(path)) await writeSecret(path, currentLine('0', randomBytes(32)))
  return readRing(path, await readSecret(path))
}

/** Replaces the current key. Only the public half of the old one is kept, so that its signatures can still be verified. */
export async function rotateIdentityKey(dataDir: string): Promise<IdentityKeyRing> {
  const { current, old } = await loadIdentityKeys(dataDir)
  const lines = [current, ...old].map(({ keyId, publicKey }) => `old ${keyId.replace(':', ' ')} ${publicKey}\n`)
  await writeSecret(
    identityKeyPath(dataDir),
    currentLine(nextVersion([current, ...old]), randomBytes(32)) + lines.join(''),
  )
  return loadIdentityKeys(dataDir)
}

function currentLine(version: string, seed: Buffer): string {
  return `ed25519 ${version} ${encodeBase64(seed)}\n`
}

/** A version number above those of all keys in the file. */
function nextVersion(keys: readonly OldKey[]): string {
  const used = keys.map(({ keyId }) => Number(/^ed25519:(\d{1,9})$/.exec(keyId)?.[1] ?? -1))
  return String(Math.max(...used) + 1)
}

function readRing(path: string, text: string): IdentityKeyRing {
  const [first = '', ...rest] = text.split(/\r?\n/).filter((line) => line !== '')
  const [, version, seed] = CURRENT.exec(first) ?? []
  const bytes = decodeBase64(seed ?? '')
  if (version === undefined || bytes?.length !== 32) {
    throw new Error(`${path} does not begin with a key: expected "ed25519 <version> <43 base64 characters>"`)
  }
  const old = rest.map((line, index) => {
    const [, oldVersion, publicKey] = OLD.exec(line) ?? []
    if (oldVersion === undefined || publicKey === undefined) {
      throw new Error(`${path}:${index + 2}: expected "old ed25519 <version> <43 base64 characters>"`)
    }
    return { keyId: `ed25519:${oldVersion}`, publicKey }
  })
  return { current: signingKeyFromSeed(`ed25519:${version}`, bytes), old }
}
