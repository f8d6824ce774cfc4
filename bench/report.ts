import { readFileSync, writeFileSync } from 'node:fs'
import { arch, cpus, platform, release, totalmem } from 'node:os'
import { join } from 'node:path'
import { PROJECT_ROOT } from '../test/support/project.ts'
import type { Measurement } from './measurement.ts'

interface Column {
  readonly title: string
  readonly cell: (row: Measurement, floor: Measurement | undefined) => string
}

const number = (value: number | undefined, digits = 0) =>
  value === undefined
    ? ''
    : value.toLocaleString('en', { maximumFractionDigits: digits, minimumFractionDigits: digits })

/** Small figures keep a digit that says something. */
const fine = (value: number | undefined) => number(value, value !== undefined && value < 10 ? 2 : value! < 100 ? 1 : 0)

/** How much of the machine's limit is reached: throughput over throughput, or time over time where only times were taken. */
function ratio(row: Measurement, floor: Measurement | undefined): string {
  if (row.perSecond !== undefined && floor?.perSecond !== undefined) return (row.perSecond / floor.perSecond).toFixed(2)
  if (row.p50Ms !== undefined && floor?.p50Ms !== undefined) return (floor.p50Ms / row.p50Ms).toFixed(2)
  return ''
}

const floorFigure = (floor: Measurement | undefined) =>
  floor?.perSecond !== undefined
    ? `${number(floor.perSecond)}/s`
    : floor?.p50Ms !== undefined
      ? `${fine(floor.p50Ms)} ms`
      : ''

const COLUMNS: readonly Column[] = [
  { title: 'benchmark', cell: (row) => row.benchmark },
  { title: 'variant', cell: (row) => row.variant },
  { title: 'per second', cell: (row) => number(row.perSecond, (row.perSecond ?? 100) < 100 ? 1 : 0) },
  { title: 'p50 ms', cell: (row) => fine(row.p50Ms) },
  { title: 'p99 ms', cell: (row) => fine(row.p99Ms) },
  { title: 'floor', cell: (_, floor) => floorFigure(floor) },
  { title: 'ratio', cell: ratio },
  { title: 'server CPU ms/op', cell: (row) => number(row.serverCpuMs, 4) },
  { title: 'of the floor', cell: (_, floor) => number(floor?.serverCpuMs, 4) },
  { title: 'Postgres CPU ms/op', cell: (row) => number(row.postgresCpuMs, 3) },
  { title: 'server peak MB', cell: (row) => number(row.serverPeakMb) },
  { title: 'Postgres MB', cell: (row) => number(row.postgresMb) },
  { title: 'disk B/op', cell: (row) => number(row.diskBytesPerOperation) },
  { title: 'note', cell: (row) => row.note ?? '' },
]

/** A Markdown table, its columns aligned so that a terminal shows it as well. */
export function table(rows: readonly Measurement[], floors: readonly Measurement[]): string {
  const floorOf = (row: Measurement) =>
    floors.find(({ benchmark, variant }) => benchmark === row.benchmark && variant === row.variant)
  const used = COLUMNS.filter(({ cell }) => rows.some((row) => cell(row, floorOf(row)) !== ''))
  const cells = [used.map(({ title }) => title), ...rows.map((row) => used.map(({ cell }) => cell(row, floorOf(row))))]
  const widths = used.map((_, column) => Math.max(...cells.map((line) => line[column]!.length)))
  const lines = cells.map((line) => `| ${line.map((text, column) => text.padEnd(widths[column]!)).join(' | ')} |`)
  const rule = `|${widths.map((width) => '-'.repeat(width + 2)).join('|')}|`
  return [lines[0], rule, ...lines.slice(1)].join('\n')
}

export function machine(): string {
  const processors = cpus()
  const memory = `${Math.round(totalmem() / 2 ** 30)} GB`
  const model = processors[0]?.model.trim() || 'unknown processor'
  return `${processors.length} × ${model}, ${memory}, ${platform()} ${release()} ${arch()}, Node ${process.versions.node}`
}

const RESULTS = join(PROJECT_ROOT, 'bench/RESULTS.md')

/** Replaces the section of this server and leaves those of others. */
export function writeResults(
  serverName: string,
  command: string,
  rows: readonly Measurement[],
  floors: readonly Measurement[],
) {
  const heading = `## ${serverName}\n`
  const own = floors.filter((floor) => !rows.some((row) => row.benchmark === floor.benchmark))
  const tables = [table(rows, floors), ...(own.length === 0 ? [] : ['Floor programs:', table(own, [])])]
  const facts = `Machine: ${machine()}. Command: \`${command}\`. Taken on ${new Date().toISOString().slice(0, 10)}.`
  const section = [heading, facts, ...tables].join('\n\n').replace('\n\n\n', '\n\n')
  const sections = readSections()
  const others = sections.slice(1).filter((text) => !text.startsWith(heading))
  writeFileSync(RESULTS, `${[sections[0], section, ...others].map((text) => text?.trim()).join('\n\n')}\n`)
}

const readSections = (): string[] => readFileSync(RESULTS, 'utf8').split(/^(?=## )/m)
