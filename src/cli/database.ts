import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { ClientConfig } from 'pg'
import type { Logger } from 'pino'
import type { Config } from '../config/schema.ts'
import {
  type EmbeddedPostgres,
  findRunningPostgres,
  startEmbeddedPostgres,
} from '../store/embedded/embedded-postgres.ts'

export const MIGRATIONS = fileURLToPath(new URL('../../migrations', import.meta.url))

export interface RunningDatabase {
  readonly connection: ClientConfig
  /** Undefined when the database is somebody else's. */
  readonly embedded: EmbeddedPostgres | undefined
  stop(): Promise<void>
}

/** The Postgres of `database.url`, or our own, started. */
export async function startDatabase(config: Config, uid: number, log: Logger): Promise<RunningDatabase> {
  const { url } = config.database
  if (url !== undefined) {
    return { connection: { connectionString: url }, embedded: undefined, stop: async () => {} }
  }
  const embedded = await startEmbeddedPostgres({ directory: postgresDirectory(config), uid, log })
  return { connection: embedded.connection, embedded, stop: embedded.stop }
}

/** For commands that work beside a running server: its Postgres when it runs, else our own for the while. */
export async function borrowDatabase(config: Config, uid: number, log: Logger): Promise<RunningDatabase> {
  const running =
    config.database.url === undefined && (await findRunningPostgres({ directory: postgresDirectory(config) }))
  return running ? { connection: running, embedded: undefined, stop: async () => {} } : startDatabase(config, uid, log)
}

function postgresDirectory(config: Config): string {
  return join(config.data_dir, 'postgres')
}
