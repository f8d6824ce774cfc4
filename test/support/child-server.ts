import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { copyCluster } from './cluster.ts'
import { ENGINE_OPTIONS } from './engine-options.ts'
import { freePort } from './free-port.ts'
import { PROJECT_ROOT } from './project.ts'
import { waitUntil } from './wait.ts'

/** The built server as an operator runs it: a process of its own, with a data directory of its own. */
export interface ChildServer {
  readonly baseUrl: string
  readonly serverName: string
  readonly dataDir: string
  /** The process id of the server that runs now. */
  pid(): number
  isRunning(): boolean
  /** Milliseconds from spawning the process to its being ready, at the last start. */
  startedInMs(): number
  start(): Promise<void>
  /** Starts the process and does not wait until it is ready. */
  begin(): void
  /** Sends the signal and waits until the process is gone. */
  kill(signal: NodeJS.Signals): Promise<void>
  waitReady(timeoutMs?: number): Promise<void>
  /** The process id of its embedded Postgres, as Postgres itself wrote it down. */
  postmasterPid(): number | undefined
  /** Where that Postgres is reached by a database client. */
  postgresSocket(): { host: string; port: number } | undefined
  /** What the process has written so far. */
  output(): string
  /** Stops it and removes the data directory. */
  dispose(): Promise<void>
}

export interface ChildServerOptions {
  /** Whether clients are told its own address, as OAuth needs. */
  readonly isPublic?: boolean
  /** Configuration beside the defaults, by environment name: `{ HEARTH__RATE_LIMITS__ENABLED: 'false' }`. */
  readonly env?: Readonly<Record<string, string>>
  readonly serverName?: string
  readonly nodeArgs?: readonly string[]
  /** Asked at each start for the built program; this checkout's without it. */
  readonly mainFile?: () => string
  /** What follows `serve`. */
  readonly args?: readonly string[]
  /** Where its data is to be, instead of in a new folder of temporary files. */
  readonly folder?: string
  /** Whether its first start makes the data directory of Postgres, as everywhere but in a run of tests, where it finds one. */
  readonly makesCluster?: boolean
}

const READY_TIMEOUT_MS = 60_000
const MAX_OUTPUT = 1 << 20

export async function startChildServer(options: ChildServerOptions = {}): Promise<ChildServer> {
  const server = await prepareChildServer(options)
  await server.start().catch(async (error: unknown) => {
    await server.dispose()
    throw error
  })
  return server
}

/** Everything for a server but its process, which the caller starts. */
export async function prepareChildServer(options: ChildServerOptions): Promise<ChildServer> {
  const dataDir = options.folder ?? (await mkdtemp(join(tmpdir(), 'hearth-')))
  await mkdir(dataDir, { recursive: true })
  const port = await freePort()
  const baseUrl = `http://127.0.0.1:${port}`
  const serverName = options.serverName ?? 'localhost'
  const { BLANK_CLUSTER: blank } = process.env
  const env: Record<string, string> = {
    ...environment(dataDir, port, serverName),
    ...(options.isPublic && { HEARTH__PUBLIC_BASE_URL: baseUrl }),
    // In a run of tests, password hashes cost next to nothing.
    ...(blank !== undefined && { HEARTH__PASSWORDS__SCRYPT__LOG2_COST: '4' }),
    ...options.env,
  }
  if (blank !== undefined && !options.makesCluster && env.HEARTH__DATABASE__URL === undefined) {
    await copyCluster(blank, join(dataDir, 'data/postgres'))
  }
  let child: ChildProcess | undefined
  let startedInMs = 0
  let output = ''

  const isRunning = () => child !== undefined && child.exitCode === null && child.signalCode === null

  async function waitReady(timeoutMs = READY_TIMEOUT_MS): Promise<void> {
    await waitUntil(
      `${baseUrl}/health/ready\n${output.slice(-4_000)}`,
      async () => (await isReady(baseUrl)) || hasGivenUp(),
      {
        timeoutMs,
        everyMs: 10,
      },
    )
  }

  function hasGivenUp(): false {
    if (!isRunning()) throw new Error(`the server ended before it was ready:\n${output.slice(-4_000)}`)
    return false
  }

  function begin(): void {
    child = spawn(
      process.execPath,
      [...(options.nodeArgs ?? []), (options.mainFile ?? mainFile)(), 'serve', ...(options.args ?? [])],
      {
        cwd: dataDir,
        env,
      },
    )
    const keep = (chunk: Buffer) => {
      output = (output + chunk.toString()).slice(-MAX_OUTPUT)
    }
    child.stdout?.on('data', keep)
    child.stderr?.on('data', keep)
  }

  async function start(): Promise<void> {
    const begun = performance.now()
    begin()
    await waitReady()
    startedInMs = performance.now() - begun
  }

  async function kill(signal: NodeJS.Signals): Promise<void> {
    child?.kill(signal)
    await waitUntil('the end of the server process', () => !isRunning())
  }

  async function dispose(): Promise<void> {
    if (isRunning()) await kill('SIGTERM').catch(() => kill('SIGKILL'))
    const postmaster = postmasterPid(dataDir)
    await waitUntil('the end of its Postgres', () => postmaster === undefined || !isAlive(postmaster)).catch(() => {
      process.kill(postmaster!, 'SIGKILL')
    })
    await rm(dataDir, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 })
  }

  return {
    baseUrl,
    serverName,
    dataDir,
    pid: () => child?.pid ?? 0,
    isRunning,
    begin,
    startedInMs: () => startedInMs,
    start,
    kill,
    waitReady,
    postmasterPid: () => postmasterPid(dataDir),
    postgresSocket: () => postgresSocket(dataDir),
    output: () => output,
    dispose,
  }
}

function environment(dataDir: string, port: number, serverName: string): Record<string, string> {
  return {
    PATH: process.env.PATH ?? '',
    HOME: process.env.HOME ?? dataDir,
    // As `npm start` and the image have it.
    MALLOC_ARENA_MAX: '1',
    NODE_OPTIONS: ENGINE_OPTIONS,
    HEARTH__SERVER_NAME: serverName,
    HEARTH__DATA_DIR: join(dataDir, 'data'),
    HEARTH__LISTEN__PORT: String(port),
    HEARTH__METRICS__PORT: '0',
    HEARTH__LOG__FORMAT: 'json',
  }
}

function mainFile(): string {
  const file = join(PROJECT_ROOT, 'dist/main.js')
  if (!existsSync(file)) throw new Error(`${file} is missing: run "npm run build" first`)
  return file
}

async function isReady(baseUrl: string): Promise<boolean> {
  try {
    return (await fetch(`${baseUrl}/health/ready`)).status === 200
  } catch {
    return false
  }
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

/** Lines of the file that Postgres keeps while it runs: process id, data directory, start time, port, socket directory. */
function postmasterFile(dataDir: string): string[] | undefined {
  const pending = [dataDir]
  for (const directory of pending) {
    const file = join(directory, 'postmaster.pid')
    if (existsSync(file)) return readFileSync(file, 'utf8').split('\n')
    if (existsSync(join(directory, 'PG_VERSION'))) continue
    const entries = readdirSync(directory, { withFileTypes: true })
    pending.push(...entries.filter((entry) => entry.isDirectory()).map((entry) => join(directory, entry.name)))
  }
  return undefined
}

function postmasterPid(dataDir: string): number | undefined {
  const pid = Number(postmasterFile(dataDir)?.[0])
  return pid > 0 ? pid : undefined
}

function postgresSocket(dataDir: string): { host: string; port: number } | undefined {
  const lines = postmasterFile(dataDir)
  return lines?.[4] === undefined ? undefined : { host: lines[4], port: Number(lines[3]) }
}
