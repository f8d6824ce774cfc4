import { execFileSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { PROJECT_ROOT } from '../../test/support/project.ts'
import { interruption } from '../interruption.ts'
import { adminClientInterop } from './admin-client.ts'
import { dendrite } from './dendrite.ts'
import { livekitInterop } from './livekit.ts'
import { runPatroni } from './patroni.ts'
import type { PeerKind } from './peer.ts'
import { type NamedOutcome, type Outcome, writeNamedReport, writeReport, writeRows } from './report.ts'
import { PEER, type Row } from './row.ts'
import { deviceRows } from './rows-devices.ts'
import { mediaRows } from './rows-media.ts'
import { membershipRows } from './rows-membership.ts'
import { queryRows } from './rows-queries.ts'
import { restoreRows } from './rows-restore.ts'
import { talkRows } from './rows-talk.ts'
import { runRustSdk } from './rust-sdk.ts'
import { openSides, type Sides } from './sides.ts'
import { synapse } from './synapse.ts'

const USAGE = `npm run interop -- synapse --python PYTHON [options]
npm run interop -- dendrite --binaries FOLDER [options]
npm run interop -- livekit --binary FILE
npm run interop -- admin-client --site FOLDER [--pictures FOLDER]
npm run interop -- patroni [--write]
npm run interop -- rust-sdk [--jobs N] [--only talk|sign-in] [--record FILE] [--record-sign-in FILE] [--minutes N] [--write]

Starts another homeserver and a Hearth on loopback and has them do everything with each other that homeservers do.
Needs openssl, and the other one: a Python that has Synapse ("python3 -m venv there && there/bin/pip install matrix-synapse"), or a
folder with the programs "dendrite" and "generate-keys", built from its Go module.
rust-sdk is no homeserver: clients on matrix-rust-sdk talk by way of a Hearth, and sign in by OAuth and by a QR code, as people have them
do. Needs Rust; it compiles for some minutes.
admin-client is a page for administrators, Ketesa, built outside of this folder: it opens all its pages against a Hearth, and each request is
looked at. Its sources say how it is built ("vite build"); --site is the folder with its index.html. Needs a Chromium.
livekit is a server for calls of groups: a Hearth lets a client into it.
patroni runs three Postgres servers, of which one is killed under load. Needs Debian's patroni, etcd-server, postgresql and haproxy.

  --versions 6,9,10,11,12   room versions
  --only TEXT               only rows with this in their name
  --partition-seconds N     how long a partition lasts (10)
  --minutes N               when to give up (20)
  --keep                    keep the folder with the other's log, and Hearth's log beside it
  --jobs N                  how many compilers run at once (2)
  --record FILE             write the requests of the Rust clients who talk, which a test sends again
  --record-sign-in FILE     write those of the ones who sign in
  --write                   write the results into docs/interop.md; with --only, these rows alone`

const ROW_TIMEOUT_MS = 180_000

const OPTIONS = {
  python: { type: 'string' },
  binaries: { type: 'string' },
  binary: { type: 'string' },
  site: { type: 'string' },
  pictures: { type: 'string' },
  versions: { type: 'string', default: '6,9,10,11,12' },
  only: { type: 'string', default: '' },
  'partition-seconds': { type: 'string', default: '10' },
  minutes: { type: 'string', default: '20' },
  keep: { type: 'boolean', default: false },
  jobs: { type: 'string', default: '2' },
  record: { type: 'string' },
  'record-sign-in': { type: 'string' },
  write: { type: 'boolean', default: false },
} as const

interface Task {
  readonly row: Row
  readonly version: string | undefined
}

function tasksOf(versions: readonly string[], only: string): Task[] {
  const rows = (all: readonly Row[]) => all.filter(({ name }) => name.toLowerCase().includes(only.toLowerCase()))
  const perVersion = versions.flatMap((version) =>
    rows([...membershipRows, ...talkRows])
      .filter(({ versions: known }) => known === 'all' || known.includes(version))
      .map((row) => ({ row, version })),
  )
  return [
    ...rows([...queryRows, ...deviceRows, ...mediaRows]).map((row) => ({ row, version: undefined })),
    ...perVersion,
    ...rows(restoreRows).map((row) => ({ row, version: undefined })),
  ]
}

async function runTask(sides: Sides, { row, version }: Task, partitionMs: number, leftMs: number): Promise<Outcome> {
  const limit = Math.min(ROW_TIMEOUT_MS, leftMs)
  const timer = new AbortController()
  const late = pause(limit, undefined, { signal: timer.signal }).then(() => {
    throw new Error(`it took longer than ${limit / 1_000} s`)
  })
  late.catch(() => {})
  try {
    const remark = await Promise.race([row.run(sides, version ?? '', { partitionMs }), late])
    return { row, version, problem: undefined, remark }
  } catch (error) {
    return { row, version, problem: withoutAddresses(sides, String((error as Error).message)), remark: undefined }
  } finally {
    timer.abort()
  }
}

/** Names and ids differ from run to run. */
function withoutAddresses({ hearth, peer }: Sides, text: string): string {
  const named = [hearth, peer].reduce(
    (all, side) =>
      all
        .replaceAll(side.name, side.label.toLowerCase())
        .replaceAll(encodeURIComponent(side.name), side.label.toLowerCase()),
    text,
  )
  return named
    .replace(/(?:%24|\$)[\w-]{43}/g, '$$event')
    .replace(/(?:%21|!)[\w-]{18,43}/g, '!room')
    .slice(0, 600)
}

function kindOf(
  [name]: readonly string[],
  { python, binaries }: { python?: string; binaries?: string },
): PeerKind | undefined {
  if (name === 'synapse' && python !== undefined) return synapse(python)
  return name === 'dendrite' && binaries !== undefined ? dendrite(binaries) : undefined
}

const currentCommit = (): string =>
  execFileSync('git', ['rev-parse', '--short', 'HEAD'], { cwd: PROJECT_ROOT, encoding: 'utf8' }).trim()

async function runClients(options: {
  jobs: string
  only: string
  record?: string
  'record-sign-in'?: string
  minutes: string
  write: boolean
}): Promise<void> {
  const { jobs, only, minutes, write } = options
  const record = { talk: options.record, 'sign-in': options['record-sign-in'] }
  await runOnce('matrix-rust-sdk', write, () => runRustSdk({ jobs, record, only, minutes: Number(minutes) }))
}

/** What is no homeserver, and so has one list of results. */
async function runOnce(
  label: string,
  write: boolean,
  run: () => Promise<{ readonly version: string; readonly outcomes: readonly NamedOutcome[] }>,
): Promise<void> {
  const hearthCommit = currentCommit()
  const startedAt = new Date()
  const { version, outcomes } = await run()
  const seconds = (Date.now() - startedAt.getTime()) / 1_000
  if (write) await writeNamedReport(label, { version, outcomes, hearthCommit, startedAt, seconds })
  conclude(outcomes)
}

async function runPatroniOnce(write: boolean): Promise<void> {
  const ended = interruption()
  await runOnce('Patroni', write, async () => {
    const run = await runPatroni(ended)
    for (const { name, problem } of run.outcomes) {
      console.log(`${problem === undefined ? '✓' : '✗'} ${name}`)
      if (problem !== undefined) console.log(`    ${problem}`)
    }
    return run
  })
}

function conclude(outcomes: readonly { readonly problem: string | undefined }[]): void {
  const failed = outcomes.filter(({ problem }) => problem !== undefined).length
  console.log(`${outcomes.length - failed} of ${outcomes.length} as they should be`)
  if (failed > 0) process.exitCode = 1
}

async function main(args: string[]): Promise<void> {
  const { values, positionals } = parseArgs({ args, options: OPTIONS, allowPositionals: true })
  if (positionals[0] === 'rust-sdk') return runClients(values)
  if (positionals[0] === 'patroni') return runPatroniOnce(values.write)
  if (positionals[0] === 'admin-client' && values.site !== undefined) {
    const bad = await adminClientInterop({ folder: values.site, pictures: values.pictures })
    process.exit(bad > 0 ? 1 : 0)
  }
  if (positionals[0] === 'livekit' && values.binary !== undefined) {
    process.exitCode = (await livekitInterop(values.binary)) > 0 ? 1 : 0
    return
  }
  const kind = kindOf(positionals, values)
  if (kind === undefined) {
    process.exitCode = 2
    return console.error(USAGE)
  }
  const versions = values.versions.split(',')
  const partitionMs = Number(values['partition-seconds']) * 1_000
  console.log(`${kind.label} ${kind.version}: starting ...`)
  const hearthCommit = currentCommit()
  const startedAt = new Date()
  const deadline = startedAt.getTime() + Number(values.minutes) * 60_000
  const ended = interruption()
  const sides = await openSides(kind)
  const outcomes: Outcome[] = []
  try {
    for (const task of tasksOf(versions, values.only)) {
      const left = deadline - Date.now()
      if (left <= 0) break
      const begun = performance.now()
      const outcome = await Promise.race([runTask(sides, task, partitionMs, left), ended])
      outcomes.push(outcome)
      const seconds = ((performance.now() - begun) / 1_000).toFixed(1)
      console.log(
        `${outcome.problem ? '✗' : '✓'} ${task.version ?? '-'} ${task.row.name.replaceAll(PEER, kind.label)} (${seconds} s)`,
      )
      if (outcome.problem) console.log(`    ${outcome.problem}`)
    }
  } finally {
    if (values.keep) await keepLog(sides)
    await sides.close(values.keep)
  }
  const seconds = (Date.now() - startedAt.getTime()) / 1_000
  const run = { kind, hearthCommit, versions, partitionMs, startedAt, seconds, outcomes }
  if (values.write) await (values.only === '' ? writeReport(run) : writeRows(run))
  conclude(outcomes)
}

async function keepLog(sides: Sides): Promise<void> {
  const file = join(tmpdir(), `interop-hearth-${process.pid}.log`)
  const [peerLog, ...hearthLog] = sides.logs().split('\n')
  await writeFile(file, hearthLog.join('\n'))
  console.log(`logs: ${peerLog}, ${file}`)
}

main(process.argv.slice(2)).catch((error: Error) => {
  console.error(`✗ ${error.message}`)
  process.exitCode = 1
})
