import { randomBytes } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ClientConfig } from 'pg'
import { type Logger, pino } from 'pino'
import { type CertificateFiles, openCertificate } from '../../src/cli/serve/certificate.ts'
import { createHealth } from '../../src/cli/serve/health.ts'
import { loadConfig } from '../../src/config/load.ts'
import type { Config } from '../../src/config/schema.ts'
import { createServerPolicy, type LiveServerPolicy } from '../../src/core/server-policy.ts'
import { type SigningKey, signingKeyFromSeed } from '../../src/core/signing/key.ts'
import type { Clock } from '../../src/domain/clock.ts'
import { createOwnSigningKey, type OwnSigningKey } from '../../src/domain/federation/own-signing-key.ts'
import { MAX_CLOCK_DIFFERENCE_MS } from '../../src/domain/limits/cluster.ts'
import { createMetrics, type Metrics } from '../../src/domain/metrics.ts'
import type { Services } from '../../src/domain/services.ts'
import type { Tracing } from '../../src/domain/tracing.ts'
import { type RunningServer, startServer as startHearth } from '../../src/server.ts'
import { createTestDatabase, MIGRATIONS, type TestDatabase } from './database.ts'
import { freePort } from './free-port.ts'
import { ALONE, IS_TWO_NODES, metricsOfBoth, OF_TWO_NODES, type SecondNode, standBeside, standBy } from './two-nodes.ts'

export interface TestServer {
  /** In force since the last start. */
  policy(): LiveServerPolicy
  readonly baseUrl: string
  /** Of the node that stands by, if one was asked for. */
  readonly standbyUrl: string
  httpsPorts(): readonly number[]
  readonly certificate: CertificateFiles | undefined
  readonly config: Config
  /** Those since the last start. */
  readonly services: Services
  readonly database: TestDatabase
  /** What operators are told of it. */
  metrics(): Promise<string>
  /** The same of the node that stands by, if there is one. */
  standbyMetrics(): Promise<string>
  /** Stops it and starts another on the same database and port, with these changes to the configuration from now on. */
  restart(changes?: Overrides<Config>): Promise<void>
  close(): Promise<void>
}

type Overrides<T> = { readonly [Key in keyof T]?: T[Key] extends object ? Overrides<T[Key]> : T[Key] }

export interface ServerTestOptions {
  /** Where its log goes; nowhere by default, except for what should not have happened. */
  readonly log?: Logger
  /** A random one by default. */
  readonly signingKey?: SigningKey
  /** The machine's by default. */
  readonly clock?: Clock
  /** Where spans go; nowhere by default. */
  readonly tracing?: Tracing
  /** For what is cached about rooms. */
  readonly roomMemoryBytes?: number
  /** Whether the database plans the statements of first syncs at the start; by default it does not. */
  readonly plansAhead?: boolean
  /** Whether a second node stands by for it, which gets only the requests that are sent to it. */
  readonly hasStandby?: boolean
  /** How that one reaches the database, if not as the first one does. */
  readonly standbyConnection?: ClientConfig
  /** One of the test's own, such as a restored one; dropped with the server. */
  readonly database?: TestDatabase
}

/** Password hashes cost next to nothing, nobody is asked to slow down unless the test asks for it, and servers of tests may be called. */
const DEFAULTS = {
  outbound: { allow_ranges: ['127.0.0.0/8'] },
  rate_limits: { enabled: false },
  passwords: { scrypt: { log2_cost: 4, block_size: 1 } },
}

/** Hearth in this process, on a free port, with a database of its own. */
export async function startServer(
  overrides: Overrides<Config> = {},
  options: ServerTestOptions = {},
): Promise<TestServer> {
  const database = options.database ?? (await createTestDatabase())
  const data_dir = join(tmpdir(), `hearth-test-${randomBytes(8).toString('hex')}`)
  // The same after a restart, so nobody else may be given it meanwhile.
  const listen = { port: await freePort() }
  const isTwoNodes = IS_TWO_NODES || options.hasStandby === true
  const forNodes = isTwoNodes && { ...OF_TWO_NODES, database: { url: database.url } }
  let values = merge({ ...DEFAULTS, ...forNodes, listen, data_dir }, overrides)
  const configured = () => loadConfig({ values, directory: tmpdir() }).config
  const config = configured()
  const signingKey = keptInMemory(options.signingKey ?? signingKeyFromSeed('ed25519:test', randomBytes(32)))
  const identityKeys = { current: signingKeyFromSeed('ed25519:0', randomBytes(32)), old: [] }
  const log = options.log ?? pino({ level: 'error' })
  let policy: LiveServerPolicy
  let metrics: Metrics
  let second: SecondNode | undefined
  const start = async (port: number) => {
    const { server_name, federation } = configured()
    policy = createServerPolicy(federation, server_name)
    metrics = createMetrics({ version: '0.0.0-test', node: '' })
    // A node whose clock is so far off is refused: then this is one alone.
    const isOff = isTwoNodes && Math.abs((options.clock ?? Date).now() - Date.now()) > MAX_CLOCK_DIFFERENCE_MS
    const started = {
      policy,
      config: { ...configured(), listen: { ...config.listen, port }, ...(isOff && { cluster: ALONE }) },
      connection: database.connection,
      migrations: MIGRATIONS,
      signingKey,
      identityKeys,
      version: '0.0.0-test',
      ...(options.clock && { clock: options.clock }),
      tracing: options.tracing,
      ...(options.roomMemoryBytes && { roomMemoryBytes: options.roomMemoryBytes }),
      // A fifth of what a start costs the database, for first syncs that few tests make.
      plansAhead: options.plansAhead ?? false,
      metrics,
      health: createHealth(),
      log,
      certificate,
      farewellMs: 0,
    }
    const first = await startHearth(started)
    const { standbyConnection: connection = started.connection } = options
    if (options.hasStandby) second = await standBy({ ...started, connection })
    else second = IS_TWO_NODES && !isOff ? await standBeside(started, first.port) : undefined
    return first
  }
  const certificate = await openCertificate(config.https, { log })
  let running: RunningServer | undefined = await start(config.listen.port)
  const baseUrl = `http://127.0.0.1:${running.port}`
  return {
    policy: () => policy,
    async metrics() {
      const text = await metrics.text()
      return second === undefined ? text : metricsOfBoth(text, await second.metrics())
    },
    async standbyMetrics() {
      return (await second?.metrics()) ?? ''
    },
    httpsPorts: () => running?.httpsPorts ?? [],
    certificate,
    baseUrl,
    config,
    get standbyUrl() {
      return `http://127.0.0.1:${second?.port}`
    },
    get services() {
      return running!.services
    },
    database,
    async restart(changes = {}) {
      const { port, close } = running!
      values = merge(values, changes)
      await second?.stop()
      await close()
      running = await start(port)
    },
    async close() {
      certificate?.close()
      await second?.stop()
      await running?.close()
      // A test file's variables stay as long as its process, and a closed server is heavy.
      running = undefined
      await database.drop()
      await rm(data_dir, { recursive: true, force: true })
    },
  }
}

/** A key for a server that nobody writes down; it stays the same over restarts. */
export function keptInMemory(current: SigningKey): OwnSigningKey {
  return createOwnSigningKey({ current, former: [] }, async ({ current: { keyId, publicKey }, former }, expiredTs) => ({
    current: signingKeyFromSeed(`ed25519:test_${former.length + 2}`, randomBytes(32)),
    former: [{ keyId, publicKey, expiredTs }, ...former],
  }))
}

function merge(base: object, overrides: object): object {
  const merged: Record<string, unknown> = { ...base }
  for (const [key, value] of Object.entries(overrides)) {
    const under = merged[key]
    merged[key] = isPlain(under) && isPlain(value) ? merge(under, value) : value
  }
  return merged
}

function isPlain(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
