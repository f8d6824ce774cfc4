import { existsSync } from 'node:fs'
import { chown, mkdir, open, readdir, rename, rm, statfs, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import type { Logger } from 'pino'
import { chooseAccount } from './account.ts'
import { findBinaries } from './binaries.ts'
import { type Connection, ensureDatabase, recoveringOf, SUPERUSER } from './cluster.ts'
import { giveTo, makeDirectories } from './directories.ts'
import { takeLock } from './lock.ts'
import { isAnswering, launch, POSTGRES_PORT, type Postmaster } from './postmaster.ts'
import { ARCHIVE_SETTINGS, shellQuoted } from './wal-archive.ts'

/** A cluster that is being brought to a moment, before it has its name. */
export interface Recovery {
  /** Major version of the programs. */
  readonly postgres: number
  /** Where the files of a base go: it does not exist yet. */
  readonly cluster: string
  /** Where the log goes. */
  readonly log: string
  free(): Promise<number>
  /**
   * Has Postgres go through the log: to the last change before a time, or to the end of the log.
   *
   * @param broken what is known to be wrong with the log
   * @throws Error with why it cannot
   */
  recover(until: number | undefined, broken: string | undefined): Promise<Connection>
  /** Stops Postgres, and gives the cluster its name: from now on servers start on it. */
  finish(): Promise<void>
  /** Stops Postgres, and lets others use the directory. What is not finished stays. */
  close(): Promise<void>
}

/** @throws Error if there is a database already */
export async function openRecovery(options: {
  readonly directory: string
  readonly uid: number
  readonly log: Logger
  readonly database: string
}): Promise<Recovery> {
  const directories = await makeDirectories(options.directory)
  if (existsSync(directories.cluster))
    throw new Error(
      `${directories.cluster} is there, and a restore overwrites nothing: move it away, or set another data_dir`,
    )
  const lock = await takeLock(directories.run)
  const cluster = recoveringOf(directories.cluster)
  const log = join(directories.root, 'wal-in')
  let postmaster: Postmaster | undefined
  try {
    for (const left of [cluster, log]) await rm(left, { recursive: true, force: true })
    await mkdir(log, { mode: 0o700 })
    const binaries = await findBinaries(directories.lib)
    const account = await chooseAccount(options.uid, binaries, dirname(directories.root))

    const stop = async (): Promise<void> => {
      postmaster?.stop('SIGINT')
      await postmaster?.exited
      postmaster = undefined
    }

    return {
      postgres: Number(binaries.majorVersion),
      cluster,
      log,
      async free() {
        const { bsize, bavail } = await statfs(directories.root)
        return bsize * bavail
      },
      async recover(until, broken) {
        const target =
          until === undefined ? {} : { recovery_target_time: postgresTime(until), recovery_target_action: 'promote' }
        const settings = {
          ...ARCHIVE_SETTINGS,
          ...target,
          restore_command: `cp ${shellQuoted(log)}/%f "%p"`,
          recovery_target_timeline: 'latest',
          // Nobody reads before its end. To be read meanwhile, it would have to take as many connections as the server that wrote the log.
          hot_standby: 'off',
        }
        await writeFile(join(cluster, 'recovery.signal'), '', { mode: 0o600 })
        await giveTo(account.owner, directories, options.uid)
        if (account.owner !== undefined) await chownAll(directories.root, account.owner)
        let reached: string | undefined
        const running = launch({
          account,
          binaries,
          directories: { ...directories, cluster },
          settings,
          log: options.log,
          onLine: (line) => {
            reached = LAST_CHANGE.exec(line)?.[1] ?? reached
          },
        })
        postmaster = running
        const connection = { host: directories.run, port: POSTGRES_PORT, user: SUPERUSER, database: options.database }
        if (await isAnswering(running, directories)) await untilPromoted(running, connection)
        if (running.hasExited()) throw new Error(whyNot(await running.lastWords(), reached, broken))
        await ensureDatabase(connection)
        return connection
      },
      async finish() {
        await stop()
        await rm(log, { recursive: true, force: true })
        await rename(cluster, directories.cluster)
        const folder = await open(directories.root, 'r')
        await folder.sync().finally(() => folder.close())
      },
      async close() {
        await stop()
        await lock.release()
      },
    }
  } catch (error) {
    await lock.release()
    throw error
  }
}

async function untilPromoted(postmaster: Postmaster, connection: Connection): Promise<void> {
  while (!postmaster.hasExited()) {
    const client = new pg.Client({ ...connection, database: 'postgres' })
    client.on('error', () => {})
    try {
      await client.connect()
      const { rows } = await client.query<{ recovering: boolean }>('SELECT pg_is_in_recovery() AS recovering')
      if (rows[0]?.recovering === false) return
    } catch {
      // It ends, or is about to: the loop looks.
    } finally {
      await client.end().catch(() => {})
    }
    await delay(100)
  }
}

/** Letters for a zone are not known yet when Postgres reads its settings. */
const postgresTime = (at: number): string => new Date(at).toISOString().replace('T', ' ').replace('Z', '+00')

/** How Postgres says how far a log went: in UTC, as it is set. */
const LAST_CHANGE = /last completed transaction was at log time (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?)/

function whyNot(words: string, reached: string | undefined, broken: string | undefined): string {
  if (!/recovery ended before configured recovery target/.test(words))
    return `Postgres does not come to that time: ${words}${broken === undefined ? '' : ` (${broken})`}`
  const last = reached === undefined ? 'it has no change' : `its last change is of ${reached.replace(' ', 'T')}Z`
  return broken === undefined
    ? `the log at the place ends before that time, ${last}: name an earlier one, or --to latest`
    : `the log at the place breaks off before that time, ${last}: ${broken}. Name an earlier one`
}

async function chownAll(root: string, owner: { readonly uid: number; readonly gid: number }): Promise<void> {
  for (const entry of await readdir(root, { recursive: true, withFileTypes: true }))
    if (!entry.isSymbolicLink()) await chown(join(entry.parentPath, entry.name), owner.uid, owner.gid)
}
