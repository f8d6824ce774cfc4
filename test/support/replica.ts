import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import { pino } from 'pino'
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../src/store/embedded/embedded-postgres.ts'
import { copyCluster } from './cluster.ts'

/** A Postgres, and another one that follows it by streaming. */
export interface Replicated {
  readonly primary: EmbeddedPostgres
  readonly url: string
  readonly replicaUrl: string
  /** The process of the replica. */
  replicaPid(): number
  stopReplica(): Promise<void>
  startReplica(): Promise<void>
  close(): Promise<void>
}

const log = pino({ level: 'silent' })
const uid = process.getuid?.() ?? 0
const SETTINGS = { fsync: 'off', full_page_writes: 'off' }

export function urlOf({ host, port, user, database }: EmbeddedPostgres['connection']): string {
  return `postgres://${user}@localhost:${port}/${database}?host=${encodeURIComponent(host)}`
}

export async function startReplicated(): Promise<Replicated> {
  const directory = await mkdtemp(join(tmpdir(), 'hearth-replica-'))
  const [there, here] = [join(directory, 'primary'), join(directory, 'replica')]
  await copyCluster(process.env.BLANK_CLUSTER!, there)
  const primary = await startEmbeddedPostgres({ directory: there, uid, log, settings: SETTINGS })
  const { host, port, user } = primary.connection
  await copyRunning(primary, there, here)
  const settings = { ...SETTINGS, primary_conninfo: `host=${host} port=${port} user=${user}` }
  const begin = () => startEmbeddedPostgres({ directory: here, uid, log, settings })
  let replica: EmbeddedPostgres | undefined = await begin()
  const { connection } = replica
  return {
    primary,
    url: urlOf(primary.connection),
    replicaUrl: urlOf(connection),
    replicaPid: () => replica!.pid(),
    async stopReplica() {
      await replica?.stop()
      replica = undefined
    },
    async startReplica() {
      replica ??= await begin()
    },
    async close() {
      await replica?.stop()
      await primary.stop()
      await rm(directory, { recursive: true, force: true })
    },
  }
}

/** As pg_basebackup does, which the packages of our Postgres do not have. */
async function copyRunning({ connection }: EmbeddedPostgres, from: string, to: string): Promise<void> {
  const client = new pg.Client({ ...connection })
  await client.connect()
  try {
    await client.query(`SELECT pg_backup_start('replica', fast => true)`)
    await mkdir(to, { recursive: true })
    await promisify(execFile)('cp', ['-a', join(from, 'cluster'), join(to, 'cluster')])
    const { rows } = await client.query<{ labelfile: string }>('SELECT labelfile FROM pg_backup_stop(false)')
    const cluster = join(to, 'cluster')
    await rm(join(cluster, 'postmaster.pid'))
    await writeFile(join(cluster, 'backup_label'), rows[0]!.labelfile, { mode: 0o600 })
    await writeFile(join(cluster, 'standby.signal'), '', { mode: 0o600 })
  } finally {
    await client.end()
  }
}
