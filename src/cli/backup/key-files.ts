import { existsSync } from 'node:fs'
import { basename } from 'node:path'
import type { SigningKey } from '../../core/signing/key.ts'
import { identityKeyPath } from '../serve/identity-key-file.ts'
import { readSecret, writeSecret } from '../serve/secret-file.ts'
import { loadSigningKey, signingKeyPath } from '../serve/signing-key-file.ts'

const pathsIn = (dataDir: string): readonly string[] => [signingKeyPath(dataDir), identityKeyPath(dataDir)]

/** The key of the server, which a backup must hold and is signed by. @throws Error if there is none: this is no data directory of a server */
export async function mustHaveSigningKey(dataDir: string): Promise<SigningKey> {
  const path = signingKeyPath(dataDir)
  if (existsSync(path)) return (await loadSigningKey(dataDir)).current
  throw new Error(
    `${path} is missing, and a server that is restored without it is another one to the others: set data_dir to the directory of the running server`,
  )
}

/** Names and texts of the key files in a data directory. */
export async function readKeyFiles(dataDir: string): Promise<Record<string, string>> {
  const files: Record<string, string> = {}
  for (const path of pathsIn(dataDir)) if (existsSync(path)) files[basename(path)] = await readSecret(path)
  return files
}

/** The key files of a data directory that are others than these. */
export async function otherKeyFiles(dataDir: string, files: Readonly<Record<string, string>>): Promise<string[]> {
  const others: string[] = []
  for (const path of pathsIn(dataDir)) {
    if (existsSync(path) && (await readSecret(path)) !== files[basename(path)]) others.push(path)
  }
  return others
}

export async function writeKeyFiles(dataDir: string, files: Readonly<Record<string, string>>): Promise<void> {
  for (const path of pathsIn(dataDir)) {
    const text = files[basename(path)]
    if (text !== undefined) await writeSecret(path, text)
  }
}
