import { createHash } from 'node:crypto'
import { chmod, chown, lstat, mkdir, readdir, realpath } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { FALLBACK_OWNER, type Owner } from './account.ts'

/** Where one embedded Postgres keeps its things. */
export interface Directories {
  readonly root: string
  /** The Postgres data directory. */
  readonly cluster: string
  /** The unix socket and the lock of the owning server. */
  readonly run: string
  /** Links to shared libraries, when the package came without them. */
  readonly lib: string
}

const SOCKET_NAME = '.s.PGSQL.5432'
/** A unix socket's path has room for 103 bytes on macOS and 107 on Linux. */
const MAX_SOCKET_PATH = 103

export async function makeDirectories(root: string): Promise<Directories> {
  await mkdir(root, { recursive: true, mode: 0o700 })
  const path = await realpath(root)
  const run = runDirectory(path)
  await mkdir(run, { recursive: true, mode: 0o700 })
  return { root: path, cluster: join(path, 'cluster'), run, lib: join(path, 'lib') }
}

/** Beside the cluster when the path is short enough, else in the directory for temporary files under a name that only this root has. */
function runDirectory(root: string): string {
  const beside = join(root, 'run')
  if (fits(beside)) return beside
  const name = `hearth-${createHash('sha256').update(root).digest('hex').slice(0, 16)}`
  const temporary = join(tmpdir(), name)
  return fits(temporary) ? temporary : join('/tmp', name)
}

function fits(directory: string): boolean {
  return Buffer.byteLength(join(directory, SOCKET_NAME)) <= MAX_SOCKET_PATH
}

/** Gives everything to `owner` and closes it to others. Refuses a run directory that somebody else made first. */
export async function giveTo(owner: Owner | undefined, directories: Directories, uid: number): Promise<void> {
  const run = await lstat(directories.run)
  const ours = uid === 0 ? [uid, owner?.uid, FALLBACK_OWNER.uid] : [uid]
  if (!run.isDirectory() || !ours.includes(run.uid)) {
    throw new Error(`${directories.run} belongs to somebody else; remove it and start again`)
  }
  for (const directory of [directories.root, directories.run]) {
    const { uid: current } = await lstat(directory)
    if (owner !== undefined && current !== owner.uid) await chownTree(directory, owner)
    await chmod(directory, 0o700)
  }
}

async function chownTree(path: string, owner: Owner): Promise<void> {
  for (const entry of await readdir(path, { recursive: true, withFileTypes: true })) {
    if (!entry.isSymbolicLink()) await chown(join(entry.parentPath, entry.name), owner.uid, owner.gid)
  }
  await chown(path, owner.uid, owner.gid)
}
