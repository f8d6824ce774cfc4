import { existsSync } from 'node:fs'
import type { Config } from '../../config/schema.ts'
import { type Manifest, provedText } from '../../core/backup/manifest.ts'
import { openBackup } from '../../domain/backup/backup-files.ts'
import type { BackupStore } from '../../domain/backup/backup-store.ts'
import { type Trust, whyUnproved } from '../../domain/backup/proof.ts'
import { openUnseal, type Secrets, type Unseal } from '../../domain/backup/seal.ts'
import { UsageError } from '../command.ts'
import { loadSigningKey, signingKeyPath } from '../serve/signing-key-file.ts'

/** The options that say whom a reader of backups believes. */
export const TRUST_OPTIONS = {
  'signed-by': { type: 'string', multiple: true },
  'even-if-unsigned': { type: 'boolean' },
} as const

export interface TrustValues {
  readonly 'signed-by'?: readonly string[]
  readonly 'even-if-unsigned'?: boolean
}

/** A backup, and what reads it. */
export interface OpenedBackup {
  readonly manifest: Manifest
  readonly unseal: Unseal
  /** Undefined where the operator wants no proof. */
  readonly trust: Trust | undefined
}

/** Opens a backup, and makes sure that it is of this server and that nobody altered it. @throws Error with what to do */
export async function openTrusted(
  store: BackupStore,
  config: Config,
  secrets: Secrets,
  values: TrustValues & { readonly id?: string },
): Promise<OpenedBackup> {
  const manifest = await openBackup(store, values.id)
  const unseal = await openUnseal(store, manifest.recipients, secrets)
  const trust = await trustOf(config, secrets, values, unseal)
  const why = trust && whyNotTrusted(manifest, trust)
  if (why !== undefined) throw new Error(`the backup ${manifest.id} in ${store.place} cannot be trusted: ${why}`)
  return { manifest, unseal, trust }
}

/** Whom a reader believes; undefined if the operator wants no proof. */
export async function trustOf(
  config: Config,
  secrets: Secrets,
  values: TrustValues,
  { mac }: Unseal,
): Promise<Trust | undefined> {
  const publicKeys = await knownKeys(config, values['signed-by'] ?? [])
  if (values['even-if-unsigned'] === true) return undefined
  return { mac, publicKeys, expectsEncryption: secrets.passphrase !== undefined || secrets.identity !== undefined }
}

function whyNotTrusted(manifest: Manifest, trust: Trust): string | undefined {
  const { proof, recipients, release } = manifest
  if (recipients.length === 0 && trust.expectsEncryption)
    return 'it is not encrypted, although a passphrase or a secret key was given, so that anybody may have put it there. If you made it, say --even-if-unsigned'
  if (proof === undefined)
    return `it is not signed, as Hearth ${release} did not sign backups or somebody took the signature away. If you made it and nobody else can write there, say --even-if-unsigned`
  return whyUnproved('manifest', provedText(manifest), proof, trust, recipients.length > 0)
}

const PUBLIC_KEY = /^[A-Za-z0-9+/]{43}$/

async function knownKeys(config: Config, noted: readonly string[]): Promise<string[]> {
  const wrong = noted.find((key) => !PUBLIC_KEY.test(key))
  if (wrong !== undefined)
    throw new UsageError(
      `--signed-by takes a public key, 43 letters and digits as \`keys show\` prints it, not "${wrong}"`,
    )
  if (!existsSync(signingKeyPath(config.data_dir))) return [...noted]
  const { current, former } = await loadSigningKey(config.data_dir)
  return [...noted, current.publicKey, ...former.map(({ publicKey }) => publicKey)]
}
