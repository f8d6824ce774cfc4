import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Logger } from 'pino'
import type { Config } from '../../config/schema.ts'
import type { BackupStore } from '../../domain/backup/backup-store.ts'
import { createDirectoryBackups } from '../../domain/backup/directory-backups.ts'
import type { Secrets } from '../../domain/backup/seal.ts'
import type { Host } from '../command.ts'
import { UsageError } from '../command.ts'

/** The options that say where a backup is and who may read it. */
export const PLACE_OPTIONS = {
  passphrase: { type: 'boolean' },
  'passphrase-file': { type: 'string' },
  'identity-file': { type: 'string' },
  recipient: { type: 'string', multiple: true },
} as const

export interface PlaceValues {
  readonly passphrase?: boolean
  readonly 'passphrase-file'?: string
  readonly 'identity-file'?: string
  readonly recipient?: readonly string[]
}

/** The place that the operator named, else that of the configuration. */
export function placeOf(named: string | undefined, config: Config): string {
  const place = named ?? config.backup.place
  if (place === undefined) throw new UsageError('name a place: a directory or s3://bucket/prefix; or set backup.place')
  return place
}

export async function openPlace(place: string, host: Host, config: Config, log: Logger): Promise<BackupStore> {
  if (!place.startsWith('s3:')) return createDirectoryBackups(resolve(host.directory, place))
  const [, bucket, prefix = ''] = /^s3:\/\/([a-z0-9.-]+)(?:\/(.*))?$/.exec(place) ?? []
  if (bucket === undefined) throw new UsageError(`"${place}" is not understood: it looks like s3://bucket/prefix`)
  const own = Object.fromEntries(Object.entries(config.backup.s3).filter(([, value]) => value !== undefined))
  const settings = { ...config.media.s3, prefix: '', ...own, bucket }
  for (const key of ['endpoint', 'access_key_id', 'secret_access_key'] as const) {
    if (settings[key] === undefined) throw new Error(`${place} needs a backup.s3.${key}`)
  }
  const [{ createS3Bucket }, { createS3Backups }, { createSpool }, { createGuardedClient }] = await Promise.all([
    import('../../domain/media/s3-bucket.ts'),
    import('../../domain/backup/s3-backups.ts'),
    import('../../domain/media/spool.ts'),
    import('../../outbound/http.ts'),
  ])
  const client = await createGuardedClient({ config, log, connections: 8 })
  const spool = createSpool(join(config.data_dir, 'backup-spool'))
  return createS3Backups(
    place,
    prefix,
    createS3Bucket(settings, async () => client),
    spool,
    client.close,
  )
}

/** What protects the backup, as the operator said or as configured. */
export async function secretsOf(host: Host, values: PlaceValues, config: Config): Promise<Secrets> {
  const named = (path: string) => readFileSync(resolve(host.directory, path), 'utf8')
  const isAsked = values.passphrase === true
  const file = values['passphrase-file']
  if (isAsked && file !== undefined) throw new UsageError('give either --passphrase or --passphrase-file')
  const passphrase = isAsked
    ? await host.askSecret('Passphrase of the backups: ')
    : file !== undefined
      ? named(file).replace(/\r?\n$/, '')
      : // Who names a secret key has a backup that the configured passphrase did not make.
        values['identity-file'] === undefined
        ? config.backup.passphrase
        : undefined
  if (passphrase === '') throw new UsageError('the passphrase is empty')
  const key = values['identity-file']
  const identity = key === undefined ? undefined : /^AGE-SECRET-KEY-\S+$/m.exec(named(key))?.[0]
  if (key !== undefined && identity === undefined)
    throw new Error(`${key} holds no secret key of age: AGE-SECRET-KEY-1...`)
  return { passphrase, identity, recipients: values.recipient ?? config.backup.recipients }
}
