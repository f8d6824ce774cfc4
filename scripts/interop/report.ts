import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { PROJECT_ROOT } from '../../test/support/project.ts'
import type { PeerKind } from './peer.ts'
import { PEER, type Row } from './row.ts'

export interface Outcome {
  readonly row: Row
  /** Undefined where it is no matter of rooms. */
  readonly version: string | undefined
  readonly problem: string | undefined
  readonly remark: string | undefined
}

export interface Run {
  readonly kind: PeerKind
  readonly hearthCommit: string
  readonly versions: readonly string[]
  readonly partitionMs: number
  readonly startedAt: Date
  readonly seconds: number
  readonly outcomes: readonly Outcome[]
}

const FILE = join(PROJECT_ROOT, 'docs/interop.md')

const HEAD = `# With other homeservers, and with clients

\`npm run interop -- synapse --python <python with synapse> --write\` starts a Synapse and a Hearth beside each other, each behind HTTPS on
loopback with certificates of an authority that only they trust, has a person on each use them as clients do, and writes this page;
\`npm run interop -- dendrite --binaries <folder>\` does the same with a Dendrite. Rooms are made by one and joined by the other; after a
partition both must have the same events as state.

\`npm run interop -- rust-sdk --write\` compiles clients on matrix-rust-sdk as it is published, and has them do with a Hearth what people
do with their phones: talk, and sign in by a browser or by a QR code.

\`npm run interop -- patroni --write\` has Patroni run three Postgres servers with synchronous replication, and kills the primary while
people use two nodes.
`

const PART = /^(?=## With )/m

/** Writes what was found into docs/interop.md, in place of what was found with the same kind of homeserver before. */
export const writeReport = (run: Run): Promise<void> => writePart(run.kind.label, reportOf(run))

/**
 * Puts rows that ran alone into the part of that kind of homeserver, and leaves the others and the time of the whole run as they are.
 * @throws Error for rows in rooms, and where there is no part of this release yet
 */
export async function writeRows(run: Run): Promise<void> {
  const text = await readFile(FILE, 'utf8')
  const head = `## With ${run.kind.label} ${run.kind.version}`
  const part = text.split(PART).find((each) => each.startsWith(`${head}\n`))
  if (part === undefined || run.outcomes.some(({ version }) => version !== undefined))
    throw new Error('only rows outside rooms, of the release that the whole run was with, can be written alone')
  const at = `${run.startedAt.toISOString().slice(0, 16)}Z, with Hearth ${run.hearthCommit}`
  const lines = part.trimEnd().split('\n')
  for (const { row, problem, remark } of run.outcomes) {
    const name = row.name.replaceAll(PEER, run.kind.label)
    const found = problem === undefined ? (remark === undefined ? 'yes' : `yes, ${remark}`) : `**no**: ${problem}`
    const before = lines.findIndex((each) => each.startsWith(`| ${name} |`))
    const last = lines.findLastIndex((each) => each.startsWith('| '))
    const cells = line([name, `${found} (${at})`])
    if (before === -1) lines.splice(last + 1, 0, cells)
    else lines[before] = cells
  }
  await writeFile(
    FILE,
    text.replace(part.trimEnd(), () => lines.join('\n')),
  )
}

/** Something that was tried once. */
export interface NamedOutcome {
  readonly name: string
  readonly problem: string | undefined
}

/** The same of something that is no homeserver. */
export function writeNamedReport(
  label: string,
  run: Pick<Run, 'hearthCommit' | 'startedAt' | 'seconds'> & {
    readonly version: string
    readonly outcomes: readonly NamedOutcome[]
  },
): Promise<void> {
  const rows = run.outcomes.map(({ name, problem }) =>
    line([name, problem === undefined ? 'yes' : `**no**: ${problem}`]),
  )
  const head = `## With ${label} ${run.version}`
  return writePart(label, [head, '', summaryOf(run), '', line(['', '']), line(['---', '---']), ...rows].join('\n'))
}

const summaryOf = ({ startedAt, seconds, hearthCommit }: Pick<Run, 'startedAt' | 'seconds' | 'hearthCommit'>) =>
  `Run at ${startedAt.toISOString().slice(0, 16)}Z in ${Math.round(seconds)} s, with Hearth ${hearthCommit}.`

async function writePart(label: string, part: string): Promise<void> {
  const before = await readFile(FILE, 'utf8').catch(() => '')
  const [, ...parts] = before.split(PART)
  const others = parts.filter((other) => !other.startsWith(`## With ${label}`))
  const all = [...others, part].toSorted().map((text) => text.trimEnd())
  await writeFile(FILE, `${[HEAD.trimEnd(), ...all].join('\n\n')}\n`)
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
    ...inRooms.map((row) =>
      line([row.name.replaceAll(PEER, run.kind.label), ...run.versions.map((version) => cell(row, version))]),
    ),
  ]
  const others = [
    line(['', '']),
    line(['---', '---']),
    ...elsewhere.map((row) => line([row.name.replaceAll(PEER, run.kind.label), cell(row, undefined)])),
  ]
  const { kind, partitionMs } = run
  const summary = `${summaryOf(run)} Partitions last ${partitionMs / 1_000} s.`
  return [
    `## With ${kind.label} ${kind.version}`,
    ...['', `${summary} ${kind.remark}`],
    ...(inRooms.length > 0 ? ['', '### In rooms', '', ...rooms] : []),
    ...(elsewhere.length > 0 ? ['', '### Outside rooms', '', ...others] : []),
    ...(problems.length > 0 ? ['', '### Failures', '', ...problems.map((text, at) => `${at + 1}. ${text}`)] : []),
  ].join('\n')
}

const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
