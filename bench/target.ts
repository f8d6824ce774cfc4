import { join } from 'node:path'
import pg from 'pg'
import { type ChildServer, startChildServer } from '../test/support/child-server.ts'
import { PROJECT_ROOT } from '../test/support/project.ts'
import type { BenchOptions } from './options.ts'
import { type Usage, usageOfProcess, usageOfTree } from './processes.ts'

/** The server under measurement, ours or another. */
export interface Target {
  readonly baseUrl: string
  readonly registrationToken: string | undefined
  usage(): { server: Usage | undefined; postgres: Usage | undefined }
  /** How a database client reaches its Postgres, where that is known. */
  database(): pg.ClientConfig | undefined
  /** Present where we may stop and start it: our own. */
  readonly own: ChildServer | undefined
  close(): Promise<void>
}

export interface TargetWish {
  /** Keep the real cost of password hashing: only where logging in is what is measured. */
  readonly withRealPasswords?: boolean
  /** Configuration that the case needs. */
  readonly env?: Readonly<Record<string, string>>
  /** Tell clients its own address, as OAuth needs. */
  readonly isPublic?: boolean
  /** How its process is to be started. */
  readonly nodeArgs?: readonly string[]
}

export async function openTarget(options: BenchOptions, wish: TargetWish = {}): Promise<Target> {
  const target = options.url === undefined ? await startOwn(options, wish) : attach(options, options.url)
  await assertDurable(target.database()).catch(async (error: unknown) => {
    await target.close()
    throw error
  })
  return target
}

/** Configuration that lets a server call others on loopback, whom a certificate of ours vouches for. */
export function outboundTo(caFile: string): Readonly<Record<string, string>> {
  return { HEARTH__OUTBOUND__CA_FILE: caFile, HEARTH__OUTBOUND__ALLOW_RANGES: '127.0.0.0/8' }
}

async function startOwn(options: BenchOptions, wish: TargetWish): Promise<Target> {
  const own = await startChildServer({
    isPublic: wish.isPublic === true,
    env: {
      HEARTH__RATE_LIMITS__ENABLED: 'false',
      HEARTH__LOG__LEVEL: 'warn',
      ...(wish.withRealPasswords === true ? {} : { HEARTH__PASSWORDS__SCRYPT__LOG2_COST: '4' }),
      ...wish.env,
    },
    nodeArgs: [
      ...(options.profile ? ['--cpu-prof', `--cpu-prof-dir=${join(PROJECT_ROOT, 'bench/profiles')}`] : []),
      ...(wish.nodeArgs ?? []),
    ],
  })
  return {
    baseUrl: own.baseUrl,
    registrationToken: undefined,
    usage: () => ({ server: usageOfProcess(own.pid()), postgres: usageOfTree(own.postmasterPid()) }),
    database: () => ({ ...own.postgresSocket(), user: 'hearth', database: 'hearth' }),
    own,
    close: () => own.dispose(),
  }
}

function attach(options: BenchOptions, baseUrl: string): Target {
  const { databaseUrl, registrationToken, serverPid, postgresPid } = options
  return {
    baseUrl,
    registrationToken,
    usage: () => ({ server: usageOfProcess(serverPid), postgres: usageOfTree(postgresPid) }),
    database: () => (databaseUrl === undefined ? undefined : { connectionString: databaseUrl }),
    own: undefined,
    close: async () => undefined,
  }
}

/** Figures without durable commits would be figures of another product. */
async function assertDurable(connection: pg.ClientConfig | undefined): Promise<void> {
  if (connection === undefined) return
  await withClient(connection, async (client) => {
    for (const setting of ['fsync', 'synchronous_commit', 'full_page_writes']) {
      const { rows } = await client.query('SELECT current_setting($1) AS value', [setting])
      if (rows[0].value !== 'on')
        throw new Error(`${setting} is ${rows[0].value}: not measuring a server that may forget`)
    }
  })
}

/** Size of the database after a checkpoint. */
async function databaseBytes(connection: pg.ClientConfig | undefined): Promise<number | undefined> {
  if (connection === undefined) return undefined
  return withClient(connection, async (client) => {
    await client.query('CHECKPOINT')
    const { rows } = await client.query('SELECT pg_database_size(current_database()) AS bytes')
    return Number(rows[0].bytes)
  })
}

async function withClient<T>(connection: pg.ClientConfig, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client(connection)
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

/** What a stretch of work cost: CPU seconds of server and Postgres, growth of the database. */
export async function costOf(target: Target, work: () => Promise<number>) {
  const bytesBefore = await databaseBytes(target.database())
  const before = target.usage()
  const operations = await work()
  const after = target.usage()
  const bytesAfter = await databaseBytes(target.database())
  const perOperation = (first: number | undefined, last: number | undefined) =>
    first === undefined || last === undefined ? undefined : (last - first) / operations
  const cpuMs = (which: 'server' | 'postgres') => {
    const seconds = perOperation(before[which]?.cpuSeconds, after[which]?.cpuSeconds)
    return seconds === undefined ? undefined : seconds * 1_000
  }
  return {
    serverCpuMs: cpuMs('server'),
    postgresCpuMs: cpuMs('postgres'),
    serverPeakMb: after.server?.peakMb,
    postgresMb: after.postgres?.proportionalMb,
    diskBytesPerOperation: perOperation(bytesBefore, bytesAfter),
  }
}
