import { existsSync } from 'node:fs'
import { readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { platform } from 'node:os'
import { join } from 'node:path'
import { kill, pid as ownPid } from 'node:process'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { type Account, childEnvironment, finished } from './account.ts'
import type { Binaries } from './binaries.ts'
import type { Directories } from './directories.ts'

/** How a `pg` client reaches a database of a cluster. */
export interface Connection {
  readonly host: string
  readonly port: number
  readonly user: string
  readonly database: string
}

export const SUPERUSER = 'hearth'
const STOP_TIMEOUT_MS = 60_000

/** The name of a cluster that is being brought to a moment. */
export const recoveringOf = (cluster: string): string => `${cluster}.recovering`

/** The name of a cluster as it was before it was copied for a later Postgres. */
export const formerOf = (cluster: string, major: string): string => `${cluster}.pg${major}`

/** Clusters that were copied for a later Postgres, in the directory of the cluster: their names. */
export async function formerClusters(root: string): Promise<string[]> {
  return (await readdir(root)).filter((name) => /^cluster\.pg\d+(-\d+)?$/.test(name)).sort()
}

/** Makes the cluster when there is none. It appears under its name only when complete, so that a kill half-way leaves nothing to repair. */
export async function ensureCluster(account: Account, binaries: Binaries, directories: Directories): Promise<void> {
  const { cluster } = directories
  if (existsSync(cluster)) return
  const half = recoveringOf(cluster)
  if (existsSync(half))
    throw new Error(
      `a restore to a time was cut off, and left ${half}: run it again, or remove that directory to begin with an empty database`,
    )
  const draft = `${cluster}.new`
  await rm(draft, { recursive: true, force: true })
  const args = ['--pgdata', draft, '--username', SUPERUSER, '--auth=trust', '--encoding=UTF8', '--locale=C']
  const child = account.run(binaries.initdb, [...args, '--no-instructions'], {
    cwd: directories.root,
    env: childEnvironment(binaries),
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const { code, stderr } = await finished(child)
  if (code !== 0) throw new Error(`initdb failed: ${stderr.trim()}`)
  await rename(draft, cluster)
}

/** The major version of Postgres that made a cluster; undefined if there is none. */
export async function majorOf(cluster: string): Promise<string | undefined> {
  return existsSync(cluster) ? (await readFile(join(cluster, 'PG_VERSION'), 'utf8')).trim() : undefined
}

/** Makes the database unless it is there. */
export async function ensureDatabase(connection: Connection): Promise<void> {
  const client = new pg.Client({ ...connection, database: 'postgres' })
  await client.connect()
  try {
    const { rowCount } = await client.query('SELECT FROM pg_database WHERE datname = $1', [connection.database])
    if (rowCount === 0) await client.query(`CREATE DATABASE ${pg.escapeIdentifier(connection.database)}`)
  } finally {
    await client.end()
  }
}

/** Cleans up after an earlier server: stops its Postgres if it still runs, and corrects a process id that another program has by now. */
export async function clearRemains(directories: Directories): Promise<void> {
  const pidFile = join(directories.cluster, 'postmaster.pid')
  const content = await readFile(pidFile, 'utf8').catch(() => undefined)
  const pid = Number(content?.split('\n')[0])
  if (content !== undefined && pid > 0 && isAlive(pid)) {
    if (await isPostmasterOf(pid, directories.cluster)) await stopForeign(pid)
    else await disown(pidFile, content)
  }
  // Of this cluster, and of an earlier one that was being copied.
  for (const port of [5432, 5433]) await rm(join(directories.run, `.s.PGSQL.${port}.lock`), { force: true })
}

async function stopForeign(pid: number): Promise<void> {
  kill(pid, 'SIGINT')
  const deadline = Date.now() + STOP_TIMEOUT_MS
  while (isAlive(pid)) {
    if (Date.now() > deadline) throw new Error(`the Postgres of an earlier run (process ${pid}) does not stop`)
    await delay(20)
  }
}

/**
 * Postgres refuses to start while the process id in its file is alive, even when a restarted machine or container gave that number
 * to another program. It counts its parent's number as stale, and still checks the shared memory named on the file's other lines,
 * so naming ourselves is safe where removing the file is not.
 */
async function disown(pidFile: string, content: string): Promise<void> {
  await writeFile(pidFile, content.replace(/^\d+/, String(ownPid)))
}

function isAlive(pid: number): boolean {
  try {
    kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/** Where the command line of a process cannot be read, it is taken for the postmaster: refusing to start is the safe side. */
async function isPostmasterOf(pid: number, cluster: string): Promise<boolean> {
  if (platform() !== 'linux') return true
  const command = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')
  return command.split('\0').includes(cluster)
}
