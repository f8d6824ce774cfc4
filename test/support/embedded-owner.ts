import { pino } from 'pino'
import { startEmbeddedPostgres } from '../../src/store/embedded/embedded-postgres.ts'

/** A process that owns the Postgres of the directory named on its command line, says so in one line, and stays until it is killed. */
const directory = process.argv[2] ?? ''
const postgres = await startEmbeddedPostgres({
  directory,
  uid: process.getuid?.() ?? 0,
  log: pino({ level: 'silent' }),
})
process.stdout.write(`${JSON.stringify({ postmaster: postgres.pid(), connection: postgres.connection })}\n`)
process.once('SIGTERM', () => void postgres.stop())
