import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { PROJECT_ROOT } from '../../test/support/project.ts'
import type { Row } from './row.ts'

export interface Outcome {
  readonly row: Row
  /** Undefined where it is no matter of rooms. */
  readonly version: string | undefined
  readonly problem: string | undefined
  readonly remark: string | undefined
}

export interface Run {
  readonly synapseVersion: string
  readonly hearthCommit: string
  readonly versions: readonly string[]
  readonly partitionMs: number
  readonly startedAt: Date
  readonly seconds: number
  readonly outcomes: readonly Outcome[]
}

const NOT_YET = [
  'Hearth reads what was said in a room of Synapse before its join',
  'Hearth knocks at a room of Synapse',
  'media',
]

const FILE = join(PROJECT_ROOT, 'docs/interop.md')

/** Writes what was found into docs/interop.md. */
export async function writeReport(run: Run): Promise<void> {
  const before = await readFile(FILE, 'utf8').catch(() => '')
  const text = reportOf(run)
  if (text !== before) await writeFile(FILE, text)
}

export function reportOf(run: Run): string {
  const problems: string[] = []
  const cell = (row: Row, version: string | undefined): string => {
    const outcome = run.outcomes.find((each) => each.row === row && each.version === version)
    if (outcome === undefined) return row.versions === 'all' || row.versions.includes(version ?? '') ? 'not run' : '–'
    if (outcome.problem === undefined) return outcome.remark === undefined ? 'yes' : `yes, ${outcome.remark}`
    if (!problems.includes(outcome.problem)) problems.push(outcome.problem)
    return `**no** (${problems.indexOf(outcome.problem) + 1})`
  }
  const rows = [...new Set(run.outcomes.map(({ row }) => row))]
  const inRooms = rows.filter(({ versions }) => versions !== 'once')
  const elsewhere = rows.filter(({ versions }) => versions === 'once')
  const rooms = [
    line(['', ...run.versions.map((version) => `version ${version}`)]),
    line(['---', ...run.versions.map(() => '---')]),
    ...inRooms.map((row) => line([row.name, ...run.versions.map((version) => cell(row, version))])),
  ]
  const others = [
    line(['', '']),
    line(['---', '---']),
    ...elsewhere.map((row) => line([row.name, cell(row, undefined)])),
  ]
  return [
    ...HEAD(run),
    ...(inRooms.length > 0 ? ['', '## In rooms', '', ...rooms] : []),
    ...(elsewhere.length > 0
      ? ['', '## Elsewhere', '', ...others, ...NOT_YET.map((what) => line([what, 'not yet']))]
      : []),
    ...(problems.length > 0 ? ['', '## What went wrong', '', ...problems.map((text, at) => `${at + 1}. ${text}`)] : []),
    '',
  ].join('\n')
}

const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`

const HEAD = (run: Run) => [
  '# With other homeservers',
  '',
  '`npm run interop:synapse -- --python <python with synapse> --write` starts a Synapse and a Hearth beside each other, each behind HTTPS on',
  'loopback with certificates of an authority that only they trust, has a person on each use them as clients do, and writes this page.',
  `Rooms are made by one and joined by the other; a partition lasts ${run.partitionMs / 1_000} s, after which both must have the same events as`,
  'state. Synapse runs on SQLite, without rate limits and without its cache of first syncs, publishes rooms, and waits 1 to 5 s instead of 10',
  'minutes and more before it tries a server again. After a restart each says one thing more, as Synapse takes up what it had acknowledged',
  'when the next transaction comes.',
  '',
  `Run at ${run.startedAt.toISOString().slice(0, 16)}Z in ${Math.round(run.seconds)} s: Synapse ${run.synapseVersion}, Hearth ${run.hearthCommit}.`,
]
