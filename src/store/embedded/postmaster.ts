import type { ChildProcess } from 'node:child_process'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import type { Logger } from 'pino'
import { type Account, childEnvironment } from './account.ts'
import type { Binaries } from './binaries.ts'
import { SUPERUSER } from './cluster.ts'
import type { Directories } from './directories.ts'

export type Settings = Readonly<Record<string, string>>

/** Durable, quiet, and modest enough for a small machine. Given on the command line, so that no file overrides them. */
const SETTINGS: Settings = {
  listen_addresses: '',
  unix_socket_permissions: '0700',
  fsync: 'on',
  synchronous_commit: 'on',
  full_page_writes: 'on',
  max_connections: '50',
  shared_buffers: '128MB',
  max_wal_size: '4GB',
  wal_compression: 'off',
  checkpoint_timeout: '15min',
  jit: 'off',
  timezone: 'UTC',
  log_timezone: 'UTC',
  log_line_prefix: '',
  log_checkpoints: 'off',
  io_method: 'sync',
  max_logical_replication_workers: '0',
}

/**
 * This shell becomes Postgres and leaves a watcher, which stops Postgres when the pipe on standard input closes without a message. That
 * happens when the owner is killed. The watcher is detached, because Postgres would log an unknown child process.
 */
const WATCHED = `
exec 3<&0 0</dev/null
( ( read -r word <&3 || kill -INT $$ ) >/dev/null 2>&1 & )
exec "$@" 3<&-`

/** In the name of its socket. */
export const POSTGRES_PORT = 5432

export interface Postmaster {
  readonly pid: number
  readonly exited: Promise<void>
  readonly hasExited: () => boolean
  /** Why it ended, as it said. */
  readonly lastWords: () => Promise<string>
  stop(signal: 'SIGINT' | 'SIGQUIT'): void
}

export interface Launch {
  readonly account: Account
  readonly binaries: Binaries
  readonly directories: Directories
  readonly settings: Settings
  readonly log: Logger
  /** Told what it says, line by line. */
  readonly onLine?: (line: string) => void
}

/** What earlier versions of Postgres do not know. */
const SINCE_18 = new Set(['io_method'])

export function launch({ account, binaries, directories, settings, log, onLine }: Launch): Postmaster {
  const options = Object.entries({ ...SETTINGS, unix_socket_directories: directories.run, ...settings }).filter(
    ([name]) => Number(binaries.majorVersion) >= 18 || !SINCE_18.has(name),
  )
  const args = ['-D', directories.cluster, ...options.flatMap(([name, value]) => ['-c', `${name}=${value}`])]
  const child = account.run('sh', ['-c', WATCHED, 'hearth', binaries.postgres, ...args], {
    cwd: directories.root,
    env: childEnvironment(binaries),
    detached: true,
    stdio: ['pipe', 'ignore', 'pipe'],
  })
  const lastWords = forwardLines(child, log, onLine)
  let ended = false
  const exited = new Promise<void>((resolve) => {
    child.once('exit', () => resolve()).once('error', () => resolve())
  }).then(() => {
    ended = true
    child.stdin?.end('bye\n')
  })
  child.stdin?.on('error', () => undefined)
  return { pid: child.pid ?? 0, exited, hasExited: () => ended, lastWords, stop: (signal) => child.kill(signal) }
}

const LAST_WORDS_MS = 500
const LEVELS = { FATAL: 'warn', PANIC: 'error', ERROR: 'debug', WARNING: 'warn' } as const

/** Postgres writes the time first until it has read its settings. Messages that it is starting or stopping are not errors. */
const COMPLAINT = /(?<=^|\] )(FATAL|PANIC|ERROR|WARNING):(?! {2}the database system is).*/

/** Copies the log lines of Postgres to our log; ordinary messages at the level of debugging. */
function forwardLines(child: ChildProcess, log: Logger, onLine?: (line: string) => void): () => Promise<string> {
  let rest = ''
  let complaint = 'it said nothing'
  const silence = new Promise((resolve) => child.stderr?.once('close', resolve))
  child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      onLine?.(line)
      const [words = line, severity] = COMPLAINT.exec(line) ?? []
      if (severity === 'FATAL' || severity === 'PANIC') complaint = words
      log[severity === undefined ? 'debug' : LEVELS[severity as keyof typeof LEVELS]](`postgres: ${words}`)
    }
  })
  // A child of the dead postmaster may still hold the pipe open; this does not wait for it.
  return () => Promise.race([silence, delay(LAST_WORDS_MS)]).then(() => complaint)
}

/** True once it answers queries; false when it ended first. */
export async function isAnswering(
  postmaster: Postmaster,
  directories: Directories,
  port = POSTGRES_PORT,
): Promise<boolean> {
  while (!postmaster.hasExited()) {
    if (await answers(directories, port)) return true
    await delay(15)
  }
  return false
}

async function answers(directories: Directories, port: number): Promise<boolean> {
  const client = new pg.Client({ host: directories.run, port, user: SUPERUSER, database: 'postgres' })
  client.on('error', () => undefined)
  try {
    await client.connect()
    await client.end()
    return true
  } catch {
    return false
  }
}
