import { existsSync, readdirSync, statfsSync } from 'node:fs'
import { chmod, mkdir, rm } from 'node:fs/promises'
import { freemem, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { pino } from 'pino'
import type { TestProject } from 'vitest/node'
import { chooseAccount } from '../../src/store/embedded/account.ts'
import { findBinaries } from '../../src/store/embedded/binaries.ts'
import { ensureCluster } from '../../src/store/embedded/cluster.ts'
import { giveTo, makeDirectories } from '../../src/store/embedded/directories.ts'
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../src/store/embedded/embedded-postgres.ts'
import { chooseProofs, findBrokenProofs } from '../conformance/proofs.ts'
import { copyCluster } from './cluster.ts'

declare module 'vitest' {
  interface ProvidedContext {
    postgres: EmbeddedPostgres['connection']
  }
}

const MEMORY = '/dev/shm'
const ROOM_BYTES = 3 * 2 ** 30

let directory: string
let postgres: EmbeddedPostgres
let isWhole: boolean

/** One Postgres for the whole run; it is thrown away afterwards, so it need not wait for the disk. */
export async function setup(project: TestProject): Promise<void> {
  const parent = hasRoom(MEMORY) ? MEMORY : tmpdir()
  await removeLeftOvers(parent)
  directory = join(parent, `${PREFIX}${process.pid}`)
  await mkdir(directory)
  await chmod(directory, 0o711)
  // Whatever the tests and what they start write down goes there.
  process.env.TMPDIR = directory
  process.env.ANSWERED_REQUESTS = join(directory, 'answered')
  // With a pattern only some of a file's tests run, and prove only some of what the file proves.
  isWhole = project.vitest.config.testNamePattern === undefined
  const uid = process.getuid?.() ?? 0
  const blank = await makeBlankCluster(join(directory, 'blank'), uid)
  await copyCluster(blank, join(directory, 'postgres'))
  process.env.BLANK_CLUSTER = blank
  postgres = await startEmbeddedPostgres({
    directory: join(directory, 'postgres'),
    uid,
    log: pino({ level: 'error' }),
    settings: {
      max_connections: '300',
      fsync: 'off',
      synchronous_commit: 'off',
      full_page_writes: 'off',
      max_wal_size: '256MB',
    },
  })
  project.provide('postgres', postgres.connection)
}

export async function teardown(): Promise<void> {
  await postgres.stop()
  await checkProofs(join(directory, 'answered'))
  // A browser may be about to end.
  await rm(directory, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 })
}

async function checkProofs(folder: string): Promise<void> {
  if (process.env.PROOFS === 'write') return chooseProofs(folder)
  const broken = isWhole ? await findBrokenProofs(folder) : []
  for (const text of broken) console.error(`test/conformance/proofs.json: ${text}`)
  if (broken.length > 0) process.exitCode = 1
}

/** To make a cluster takes far longer than to copy one. */
async function makeBlankCluster(root: string, uid: number): Promise<string> {
  const directories = await makeDirectories(root)
  const binaries = await findBinaries(directories.lib)
  const account = await chooseAccount(uid, binaries, dirname(directories.root))
  await giveTo(account.owner, directories, uid)
  await ensureCluster(account, binaries, directories)
  return directories.cluster
}

const PREFIX = 'hearth-tests-'

/** Whether a file system in memory can take what a run writes. */
function hasRoom(path: string): boolean {
  if (!existsSync(path)) return false
  const { bavail, bsize } = statfsSync(path)
  return Math.min(bavail * bsize, freemem()) > ROOM_BYTES
}

/** What a killed run left behind. */
async function removeLeftOvers(parent: string): Promise<void> {
  const isDead = (name: string) => name.startsWith(PREFIX) && !existsSync(`/proc/${name.slice(PREFIX.length)}`)
  await Promise.all(
    readdirSync(parent)
      .filter(isDead)
      .map((name) => rm(join(parent, name), { recursive: true, force: true })),
  )
}
