import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { decodeBase64, encodeBase64 } from '../core/base64.ts'
import { type SigningKey, signingKeyFromSeed } from '../core/signing/key.ts'
import { readSecret, writeSecret } from './secret-file.ts'

const NAME = 'signing.key'
const LINE = /^ed25519 ([A-Za-z0-9_]+) ([A-Za-z0-9+/]{43})\s*$/

export function signingKeyPath(dataDir: string): string {
  return join(dataDir, NAME)
}

/** One line, `ed25519 <version> <seed>`, as other homeservers write it. */
export function newSigningKeyLine(): string {
  const version = randomBytes(4).toString('hex')
  return `ed25519 a_${version} ${encodeBase64(randomBytes(32))}\n`
}

/** The server's key; made at the first start. Refuses a file that other users can read. */
export async function loadSigningKey(dataDir: string): Promise<SigningKey> {
  const path = signingKeyPath(dataDir)
  if (!existsSync(path)) await writeSecret(path, newSigningKeyLine())
  const [, version, seed] = LINE.exec(await readSecret(path)) ?? []
  const bytes = decodeBase64(seed ?? '')
  if (version === undefined || bytes?.length !== 32) {
    throw new Error(`${path} does not hold a signing key: expected one line "ed25519 <version> <43 base64 characters>"`)
  }
  return signingKeyFromSeed(`ed25519:${version}`, bytes)
}
