import { isObject } from '../json.ts'

/** The form of backups that this release writes, and the newest that it reads. */
export const BACKUP_FORMAT = 1

/** A file of a backup: its name in the store, and what its bytes there must be. */
export interface BackedUpFile {
  readonly name: string
  readonly bytes: number
  /** Of the bytes as stored: hex. */
  readonly sha256: string
}

/** Rows of one table, in the text form of COPY. */
export interface BackedUpRows extends BackedUpFile {
  readonly rows: number
}

export interface BackedUpTable {
  readonly name: string
  readonly columns: readonly string[]
  readonly rows: number
  readonly files: readonly BackedUpRows[]
}

export interface BackedUpMigration {
  readonly name: string
  readonly checksum: string
}

/**
 * Shows who wrote a text that lies in the place of backups: whoever can write there may have altered it, or put it there.
 * `docs/decisions/0018-backups-say-who-made-them.md` says which part helps where.
 */
export interface Proof {
  /** HMAC-SHA256 under a key that the passphrase opens: hex. None where backups are made without a passphrase. */
  readonly mac?: string | undefined
  /** By the signing key of the server: id, and unpadded base64 of the public key and the signature. */
  readonly signature: { readonly key_id: string; readonly public_key: string; readonly signature: string }
}

/** What a backup holds. It is written last: a backup without it is not whole. */
export interface Manifest {
  readonly format: number
  readonly id: string
  readonly server_name: string
  /** The release that made it. */
  readonly release: string
  /** Times in ms. The snapshot of the database is of `begun_at`. */
  readonly begun_at: number
  readonly ended_at: number
  readonly database: {
    readonly postgres: number
    /** Of all tables on disk, with their indexes. */
    readonly bytes: number
    /** What the files hold before they are compressed. */
    readonly text_bytes: number
    readonly migrations: readonly BackedUpMigration[]
    readonly tables: readonly BackedUpTable[]
    readonly sequences: readonly { readonly name: string; readonly last: number | null }[]
    /** The newest positions of the event stream and of the ledger in the snapshot. */
    readonly event_position: number
    readonly ledger_position: number
  }
  readonly media: {
    /** Which set of `media/` holds the files: those encrypted for the same readers are one. */
    readonly set: string
    readonly files: number
    readonly bytes: number
    /** Lines of `<sha256> <bytes>`, compressed. */
    readonly list: BackedUpFile
    /** Files that were removed, or were gone already, before they could be copied. */
    readonly missing: readonly string[]
  }
  /** JSON of file names and texts, compressed. */
  readonly keys: BackedUpFile
  readonly config: BackedUpFile
  /** Whether the configuration is with its secrets. */
  readonly has_secrets: boolean
  /** The age recipients that it is encrypted for; none when it is not. */
  readonly recipients: readonly string[]
  /** Of this object without this and without `sha256`. Missing in backups of early releases. */
  readonly proof?: Proof | undefined
  /** Of this object with an empty text in this place: hex. */
  readonly sha256: string
}

/** Why a text is no manifest. */
export class ManifestError extends Error {}

/**
 * Reads a manifest.
 *
 * @param hash SHA-256 in hex
 * @throws ManifestError for a damaged or altered one, and for one of a newer form
 */
export function readManifest(text: string, hash: (text: string) => string): Manifest {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new ManifestError('its manifest is damaged')
  }
  if (!isObject(value as never)) throw new ManifestError('its manifest is damaged')
  const manifest = value as Manifest
  if (typeof manifest.format !== 'number') throw new ManifestError('its manifest is damaged')
  if (manifest.format > BACKUP_FORMAT)
    throw new ManifestError(`a newer Hearth made it (${String(manifest.release)}): use that release or a later one`)
  if (manifest.sha256 !== manifestHash(manifest, hash)) throw new ManifestError('its manifest was altered or damaged')
  return manifest
}

export function writeManifest(
  manifest: Omit<Manifest, 'proof' | 'sha256'>,
  hash: (text: string) => string,
  prove: (text: string) => Proof,
): string {
  const proved = { ...manifest, proof: prove(provedText(manifest)) }
  const sha256 = manifestHash({ ...proved, sha256: '' }, hash)
  return `${JSON.stringify({ ...proved, sha256 }, undefined, 1)}\n`
}

/** The text of a manifest that its proof is of. */
export function provedText(manifest: Omit<Manifest, 'proof' | 'sha256'>): string {
  return JSON.stringify({ ...manifest, proof: undefined, sha256: undefined })
}

const manifestHash = (manifest: Manifest, hash: (text: string) => string): string =>
  hash(JSON.stringify({ ...manifest, sha256: '' }))

/** `20261125T073000123Z`: ids sort by time. */
export function backupId(at: number): string {
  return new Date(at).toISOString().replace(/[-:.]/g, '')
}

const ID = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)(\d{3})Z$/

/** The time of an id in ms; undefined for any other text. */
export function timeOfBackup(id: string): number | undefined {
  const [, year, month, day, hour, minute, second, ms] = ID.exec(id) ?? []
  if (year === undefined) return undefined
  const at = Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}.${ms}Z`)
  return Number.isNaN(at) ? undefined : at
}
