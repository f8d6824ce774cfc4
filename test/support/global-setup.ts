import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import type { TestProject } from 'vitest/node'
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../src/store/embedded/embedded-postgres.ts'

declare module 'vitest' {
  interface ProvidedContext {
    postgres: EmbeddedPostgres['connection']
  }
}

let directory: string
let postgres: EmbeddedPostgres

/** One Postgres for the whole run; it is thrown away afterwards, so it need not wait for the disk. */
export async function setup(project: TestProject): Promise<void> {
  directory = await mkdtemp(join(tmpdir(), 'hearth-test-'))
  postgres = await startEmbeddedPostgres({
    directory: join(directory, 'postgres'),
    uid: process.getuid?.() ?? 0,
    log: pino({ level: 'error' }),
    settings: { max_connections: '300', fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' },
  })
  project.provide('postgres', postgres.connection)
}

export async function teardown(): Promise<void> {
  await postgres.stop()
  await rm(directory, { recursive: true, force: true })
}
