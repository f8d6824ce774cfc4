import { Readable } from 'node:stream'
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import type { Proof } from '../../core/backup/manifest.ts'
import type { SigningKey } from '../../core/signing/key.ts'
import { sha256Of, writeFile } from './backup-files.ts'
import { type BackupStore, readWhole } from './backup-store.ts'
import { joined, once } from './chunks.ts'
import { type Mac, type ProvedKind, prove, type Trust, whyUnproved } from './proof.ts'
import type { Seal, Unseal } from './seal.ts'

const expand = promisify(gunzip)

interface Head {
  readonly name: string
  readonly sha256: string
}

/** A file that shows by itself who wrote it: a line with its name, hash and proof, and then its bytes. */
export async function writeProved(
  store: BackupStore,
  seal: Seal,
  key: SigningKey,
  kind: ProvedKind,
  name: string,
  content: Buffer,
): Promise<void> {
  const head: Head = { name, sha256: sha256Of(content) }
  const by: { readonly mac: Mac | undefined; readonly key: SigningKey } = { mac: seal.mac, key }
  const line = `${JSON.stringify({ head, proof: prove(kind, JSON.stringify(head), by) })}\n`
  await writeFile(store, seal, name, Readable.from([Buffer.from(line), content]))
}

export interface ProvedFile {
  readonly content: Buffer
  /** Why a reader must not believe it; undefined if they may. */
  whyUntrusted(trust: Trust, isEncrypted: boolean): string | undefined
}

/**
 * @param name without what its compression and encryption add
 * @throws Error for a missing or damaged file
 */
export async function readProved(
  store: BackupStore,
  unseal: Unseal,
  kind: ProvedKind,
  { name, ending, maxBytes }: { readonly name: string; readonly ending: string; readonly maxBytes: number },
): Promise<ProvedFile> {
  const full = `${name}.gz${ending}`
  const stored = await readWhole(store, full, maxBytes)
  if (stored === undefined) throw new Error(`${full} is missing`)
  const whole = await expand(await joined(unseal.unseal(once(stored))), { maxOutputLength: maxBytes })
  const end = whole.indexOf('\n')
  const { head, proof } = JSON.parse(whole.subarray(0, end).toString('utf8')) as { head: Head; proof: Proof }
  const content = whole.subarray(end + 1)
  if (head.name !== name || head.sha256 !== sha256Of(content)) throw new Error(`${full} was altered or damaged`)
  return {
    content,
    whyUntrusted: (trust, isEncrypted) => whyUnproved(kind, JSON.stringify(head), proof, trust, isEncrypted),
  }
}
