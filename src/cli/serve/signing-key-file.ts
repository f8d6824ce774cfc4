import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { decodeBase64, encodeBase64 } from '../../core/base64.ts'
import { signingKeyFromSeed } from '../../core/signing/key.ts'
import { isExposed } from '../../domain/federation/key-answer.ts'
import {
  createOwnSigningKey,
  type FormerKey,
  type OwnKeyRing,
  type OwnSigningKey,
} from '../../domain/federation/own-signing-key.ts'
import { MAX_FORMER_KEYS } from '../../domain/limits.ts'
import { readSecret, writeSecret } from './secret-file.ts'

const NAME = 'signing.key'
/** The key in use, first: `ed25519 <version> <seed>`, as other homeservers write it. */
const CURRENT = /^ed25519 ([A-Za-z0-9_]+) ([A-Za-z0-9+/]{43})\s*$/
/** A key that was in use: `old ed25519 <version> <public key> <milliseconds>`. */
const FORMER = /^old ed25519 ([A-Za-z0-9_]+) ([A-Za-z0-9+/]{43}) (\d{1,15})\s*$/

export function signingKeyPath(dataDir: string): string {
  return join(dataDir, NAME)
}

export function newSigningKeyLine(): string {
  const version = randomBytes(4).toString('hex')
  return `ed25519 a_${version} ${encodeBase64(randomBytes(32))}\n`
}

/** The server's keys; the first is made at the first start. Refuses a file that other users can read. */
export async function loadSigningKey(dataDir: string): Promise<OwnKeyRing> {
  const path = signingKeyPath(dataDir)
  if (!existsSync(path)) await writeSecret(path, newSigningKeyLine())
  return readRing(path, await readSecret(path))
}

/** The same keys, as an object that signs and can rotate them. */
export async function openSigningKey(dataDir: string): Promise<OwnSigningKey> {
  return createOwnSigningKey(await loadSigningKey(dataDir), async ({ current, former }, expiredTs) => {
    const { keyId, publicKey } = current
    const kept = [{ keyId, publicKey, expiredTs }, ...former].slice(0, MAX_FORMER_KEYS)
    await writeSecret(signingKeyPath(dataDir), newSigningKeyLine() + kept.map(formerLine).join(''))
    return loadSigningKey(dataDir)
  })
}

function formerLine({ keyId, publicKey, expiredTs }: FormerKey): string {
  return `old ${keyId.replace(':', ' ')} ${publicKey} ${expiredTs}\n`
}

function readRing(path: string, text: string): OwnKeyRing {
  const [first = '', ...rest] = text.split(/\r?\n/).filter((line) => line !== '')
  const [, version, seed] = CURRENT.exec(first) ?? []
  const bytes = decodeBase64(seed ?? '')
  if (version === undefined || bytes?.length !== 32) {
    throw new Error(`${path} does not hold a signing key: expected a line "ed25519 <version> <43 base64 characters>"`)
  }
  const current = signingKeyFromSeed(`ed25519:${version}`, bytes)
  if (isExposed(current.publicKey)) {
    throw new Error(
      `${path} holds a key that everybody has (CVE-2026-24044); make another: hearth keys generate > ${path}`,
    )
  }
  const former = rest.map((line, index) => {
    const [, oldVersion, publicKey, expiredTs] = FORMER.exec(line) ?? []
    if (oldVersion === undefined || publicKey === undefined) {
      throw new Error(`${path}:${index + 2}: expected "old ed25519 <version> <43 base64 characters> <milliseconds>"`)
    }
    return { keyId: `ed25519:${oldVersion}`, publicKey, expiredTs: Number(expiredTs) }
  })
  return { current, former }
}
