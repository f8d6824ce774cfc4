import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { pino } from 'pino'
import { startEmbeddedPostgres } from '../../src/store/embedded/embedded-postgres.ts'

/** The Postgres that the server itself would start, with the same settings, for the life of one floor program. */
export async function temporaryPostgres(create: string, clientOptions: pg.ClientConfig = {}) {
  const parent = await mkdtemp(join(tmpdir(), 'hearth-floor-'))
  const postgres = await startEmbeddedPostgres({
    directory: join(parent, 'postgres'),
    uid: process.getuid?.() ?? 1,
    log: pino({ level: 'silent' }),
    database: 'floor',
  })
  const client = new pg.Client({ ...postgres.connection, ...clientOptions })
  await client.connect()
  const { rows } = await client.query("SELECT current_setting('fsync') AS fsync")
  if (rows[0].fsync !== 'on') throw new Error('fsync is off')
  await client.query(create)
  return {
    client,
    async remove(): Promise<void> {
      await client.end()
      await postgres.stop()
      await rm(parent, { recursive: true, force: true })
    },
  }
}
