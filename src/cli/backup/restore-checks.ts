import { randomBytes } from 'node:crypto'
import { statfs } from 'node:fs/promises'
import type { Logger } from 'pino'
import type { Config } from '../../config/schema.ts'
import type { Manifest } from '../../core/backup/manifest.ts'
import { compileServerPolicy } from '../../core/server-policy.ts'
import { signingKeyFromSeed } from '../../core/signing/key.ts'
import { RESTORE_SHARE_OF_ROWS } from '../../domain/limits/backups.ts'
import { openOutbound } from '../../outbound/outbound.ts'
import { createKeyFetcher } from '../../outbound/server-keys.ts'
import type { TargetState } from '../../store/backup/restore-target.ts'
import { foreignMigrations } from '../../store/db/migrate.ts'
import type { Host } from '../command.ts'
import { MIGRATIONS } from '../database.ts'
import { localOrigin } from '../local-origin.ts'

const LOCAL_MS = 2_000

/** Why this backup cannot be restored by this release with this configuration; undefined if it can. */
export async function whyNotThisBackup(manifest: Manifest, config: Config): Promise<string | undefined> {
  if (manifest.server_name !== config.server_name)
    return `the backup is of ${manifest.server_name}, but server_name is ${config.server_name}: set server_name, or name another backup`
  const foreign = await foreignMigrations(MIGRATIONS, manifest.database.migrations)
  if (foreign.length === 0) return undefined
  return `Hearth ${manifest.release} made the backup, and this one does not know its database (${foreign.join(', ')}): restore it with that release or a later one`
}

/** Why a backup cannot be restored into this database; undefined if it can. */
export function whyNotThisDatabase(state: TargetState): string | undefined {
  if (state.kind !== 'used') return undefined
  const where = 'Name an empty one: another database.url or data_dir, or move <data_dir>/postgres away'
  return state.isServing
    ? `a server is running on this database: stop it. Then restore into an empty one. ${where}`
    : `the database is not empty, and a restore overwrites nothing. ${where}`
}

/** Why there is not enough space; undefined if there is, or nobody knows. */
export async function whyNoRoom(manifest: Manifest, config: Config): Promise<string | undefined> {
  const rows = config.database.url === undefined ? manifest.database.text_bytes * RESTORE_SHARE_OF_ROWS : 0
  const wanted = rows + (config.media.store === 'directory' ? manifest.media.bytes : 0)
  const { bsize, bavail } = await statfs(config.data_dir)
  if (bsize * bavail >= wanted) return undefined
  const mebibytes = (bytes: number) => `${Math.ceil(bytes / 1024 / 1024)} MiB`
  return `${config.data_dir} has ${mebibytes(bsize * bavail)} left, and the restore may take ${mebibytes(wanted)}: make room, or set another data_dir`
}

/** Where a server of this name answers at this moment; undefined if none was found. Two of one name break rooms and encryption. */
export async function runningElsewhere(host: Host, config: Config, log: Logger): Promise<string | undefined> {
  const origin = localOrigin(config.listen)
  const local = await fetch(`${origin}/_matrix/key/v2/server`, { signal: AbortSignal.timeout(LOCAL_MS) })
    .then((answer) => answer.json())
    .catch(() => undefined)
  if ((local as { server_name?: unknown } | undefined)?.server_name === config.server_name) return origin
  const outbound = await openOutbound({
    config,
    // Nothing that is asked here is signed.
    signingKey: signingKeyFromSeed('ed25519:none', randomBytes(32)),
    policy: compileServerPolicy({ ...config.federation, enabled: true, allow: [], deny: [] }, config.server_name),
    version: host.version,
    now: Date.now,
    log,
  })
  try {
    const keys = await createKeyFetcher(outbound.federation).own(config.server_name)
    return keys?.server_name === config.server_name ? config.server_name : undefined
  } finally {
    await outbound.close()
  }
}
