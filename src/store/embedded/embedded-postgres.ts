import { dirname } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import { chooseAccount } from './account.ts'
import { findBinaries } from './binaries.ts'
import { type Connection, clearRemains, ensureCluster, ensureDatabase, SUPERUSER } from './cluster.ts'
import { giveTo, makeDirectories } from './directories.ts'
import { isLocked, takeLock } from './lock.ts'
import { type CopyDatabase, upgradeCluster } from './major-upgrade.ts'
import { isAnswering, type Launch, launch, POSTGRES_PORT, type Postmaster, type Settings } from './postmaster.ts'
import { forgetWaiting } from './wal-archive.ts'

export interface EmbeddedPostgres {
  /** How a `pg` client reaches it. */
  readonly connection: Connection
  /** The process id of its postmaster; another one after a crash. */
  pid(): number
  /** Ends open sessions and stops it with everything on disk. */
  stop(): Promise<void>
}

export interface EmbeddedOptions {
  /** Everything lies below this directory; made when missing. */
  readonly directory: string
  /** The user id of this process. */
  readonly uid: number
  readonly log: Logger
  readonly database?: string
  /** Copies a database into an empty one of a later Postgres. Without it a cluster of an earlier Postgres is refused. */
  readonly copy?: CopyDatabase | undefined
  /** Further Postgres settings, and other values for ours. */
  readonly settings?: Settings
}

const MAX_ATTEMPTS = 60
const FAST_STOP_MS = 30_000
/** Why a start may fail while the last processes of a killed Postgres are still going. */
const TRANSIENT = /lock file|shared memory block/
/** A file that could not be written, which no second attempt helps. */
const NO_ROOM = /No space left on device/

/** Starts the Postgres of `directory` and keeps it running until `stop`; after a crash it starts it again. */
export async function startEmbeddedPostgres(options: EmbeddedOptions): Promise<EmbeddedPostgres> {
  const { log } = options
  const directories = await makeDirectories(options.directory)
  const lock = await takeLock(directories.run)
  try {
    const binaries = await findBinaries(directories.lib)
    const account = await chooseAccount(options.uid, binaries, dirname(directories.root))
    await giveTo(account.owner, directories, options.uid)
    log.debug(`embedded Postgres runs ${account.name}`)
    const setting = { account, binaries, directories, log, database: options.database ?? DATABASE }
    await upgradeCluster(setting, options.copy)
    await ensureCluster(account, binaries, directories)
    // Nobody takes it away, and there is a hole in the log after it.
    if (options.settings?.archive_mode === undefined) await forgetWaiting(directories.cluster)
    const supervisor = supervise({ account, binaries, directories, settings: options.settings ?? {}, log })
    await supervisor.started
    const connection = connectionTo(directories.run, options.database)
    await ensureDatabase(connection)
    const stop = () => supervisor.stop().finally(() => lock.release())
    return { connection, pid: supervisor.pid, stop }
  } catch (error) {
    await lock.release()
    throw error
  }
}

/** One postmaster after another, each until it ends by itself or `stop` is called. */
function supervise(spec: Launch) {
  let stopping = false
  let current: Postmaster | undefined
  const started = bringUp(false)
  const done = started.then(keepUp, () => undefined)

  /** Launches Postgres until it answers. A first start gives up on permanent errors; a restart never gives up. */
  async function bringUp(isRestart: boolean): Promise<void> {
    for (let attempt = 0; !stopping; attempt += 1) {
      const failure = await tryOnce().catch((error: Error) => error.message)
      if (failure === undefined || stopping) return
      if (!isRestart && (attempt === MAX_ATTEMPTS || !TRANSIENT.test(failure) || NO_ROOM.test(failure))) {
        throw new Error(`the embedded Postgres does not start: ${failure}`)
      }
      await delay(Math.min(100 * 2 ** attempt, isRestart ? 10_000 : 1_000))
    }
  }

  /** Returns why Postgres ended; undefined once it answers. */
  async function tryOnce(): Promise<string | undefined> {
    await clearRemains(spec.directories)
    current = launch(spec)
    // Asked to stop while clearing up: there was nothing yet that the signal could reach.
    if (stopping) current.stop('SIGINT')
    return (await isAnswering(current, spec.directories)) ? undefined : current.lastWords()
  }

  async function keepUp(): Promise<void> {
    while (!stopping) {
      await current?.exited
      if (stopping) return
      spec.log.error('embedded Postgres ended by itself; starting it again')
      await bringUp(true)
    }
  }

  async function stop(): Promise<void> {
    stopping = true
    current?.stop('SIGINT')
    const impatience = setTimeout(() => current?.stop('SIGQUIT'), FAST_STOP_MS)
    await current?.exited
    await done
    clearTimeout(impatience)
  }

  return { started, stop, pid: () => current?.pid ?? 0 }
}

/** How to reach the Postgres that a running server owns in `directory`; undefined when none runs there. */
export async function findRunningPostgres(options: Pick<EmbeddedOptions, 'directory' | 'database'>) {
  const { run } = await makeDirectories(options.directory)
  return (await isLocked(run)) ? connectionTo(run, options.database) : undefined
}

const DATABASE = 'hearth'

function connectionTo(run: string, database = DATABASE): Connection {
  return { host: run, port: POSTGRES_PORT, user: SUPERUSER, database }
}
