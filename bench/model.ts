import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { PROJECT_ROOT } from '../test/support/project.ts'

/** What one operation costs, as `bench/RESULTS.md` has it. Milliseconds of processor time, unless the name says otherwise. */
export interface Constants {
  /** A message that is sent: in the server's process, and in Postgres. */
  readonly sendMs: number
  readonly sendPostgresMs: number
  /** A held sync that is answered with a message, and asked for again. */
  readonly deliveryMs: number
  /** A sync that finds nothing. */
  readonly quietSyncMs: number
  readonly eventDiskBytes: number
  /** What each held sync adds to the memory of the process, and what it has without any. */
  readonly heldSyncBytes: number
  readonly restMb: number
  /** What a message costs more, in all, that another node passes on to the one that writes. */
  readonly passingOnMs: number
  /** Events a second that Postgres takes over one connection, all else left out. */
  readonly storedPerSecond: number
}

/** How people use a server. These are assumptions; `npm run model -- --help` says how to change them. */
export interface Habits {
  /** Of all people, who are connected in the busiest hour. */
  readonly connected: number
  /** Messages, reactions, edits and state of one person in a day. */
  readonly eventsPerDay: number
  /** The busiest hour against the mean. */
  readonly peak: number
  /** Connected members of the room of an average event. */
  readonly listeners: number
  /** How long a sync of somebody without news waits, in seconds. */
  readonly patience: number
}

export const HABITS: Habits = { connected: 0.3, eventsPerDay: 40, peak: 4, listeners: 10, patience: 30 }

/** How busy a core may be before waiting times grow. */
const BUSY = 0.7
const DAY_S = 86_400
/** By default (`limits.max_connections`). */
const MAX_CONNECTIONS = 20_000
/** What Node.js gives a process on a machine with memory enough, about. */
const HEAP_MB = 4_096
const COMMUNITIES = [1_000, 10_000, 100_000, 1_000_000]
const MACHINES = [2, 8, 64]

export interface Load {
  readonly eventsPerSecond: number
  readonly held: number
  /** Cores that are busy in processes of the server, and of Postgres. */
  readonly serverCores: number
  readonly postgresCores: number
  readonly memoryMb: number
  readonly diskGbPerYear: number
}

/** What so many people need in the busiest hour. */
export function loadOf(users: number, c: Constants, h: Habits): Load {
  const eventsPerSecond = ((users * h.eventsPerDay) / DAY_S) * h.peak
  const held = users * h.connected
  const perEvent = c.sendMs + h.listeners * c.deliveryMs
  return {
    eventsPerSecond,
    held,
    serverCores: (eventsPerSecond * perEvent + (held / h.patience) * c.quietSyncMs) / 1_000,
    postgresCores: (eventsPerSecond * c.sendPostgresMs) / 1_000,
    memoryMb: c.restMb + (held * c.heldSyncBytes) / 2 ** 20,
    diskGbPerYear: (users * h.eventsPerDay * 365 * c.eventDiskBytes) / 2 ** 30,
  }
}

/** How many people fit while each of these is busy to at most its share. */
export function peopleWithin(
  cores: { readonly server: number; readonly postgres: number },
  c: Constants,
  h: Habits,
): number {
  const one = loadOf(1, c, h)
  return Math.floor(BUSY * Math.min(cores.server / one.serverCores, cores.postgres / one.postgresCores))
}

/** What one server has of each, by default or by what was measured. */
function ceilings(c: Constants): readonly { readonly what: string; readonly of: (load: Load) => number }[] {
  return [
    { what: 'the core of the one node that serves', of: ({ serverCores }) => serverCores },
    { what: '`limits.max_connections`', of: ({ held }) => held / MAX_CONNECTIONS },
    { what: 'the heap of one process', of: ({ memoryMb }) => memoryMb / HEAP_MB },
    { what: 'one Postgres', of: ({ eventsPerSecond }) => eventsPerSecond / c.storedPerSecond },
  ]
}

/** What so many people have too little of today, where one node writes and answers: the scarcest first, with how much of it they use. */
export function shortages(users: number, c: Constants, h: Habits): string[] {
  const load = loadOf(users, c, h)
  return ceilings(c)
    .map(({ what, of }) => ({ what, used: of(load) }))
    .filter(({ used }) => used > BUSY)
    .toSorted((one, other) => other.used - one.used)
    .map(({ what, used }) => `${what} (${figure(used)} times)`)
}

/** @throws Error if the results lack a figure that the model needs */
export function constantsOf(results: string): Constants {
  const lines = results.split('\n').filter((line) => line.startsWith('|'))
  const row = (benchmark: string, variant: string): Record<string, string> => {
    let head: string[] = []
    for (const line of lines) {
      const cells = line.split('|').map((cell) => cell.trim())
      if (cells[1] === 'benchmark') head = cells
      if (cells[1] !== benchmark || cells[2] !== variant) continue
      return Object.fromEntries(cells.map((cell, at) => [head[at] ?? '', cell]))
    }
    throw new Error(
      `bench/RESULTS.md has no "${benchmark}: ${variant}"; measure it with npm run bench -- ${benchmark} --write`,
    )
  }
  const number = (cells: Record<string, string>, column: string): number => {
    const value = Number(cells[column]?.replaceAll(',', ''))
    if (cells[column] === '' || !Number.isFinite(value))
      throw new Error(`bench/RESULTS.md has no "${column}" where it is needed`)
    return value
  }
  const send = row('send', '64 senders, 10 rooms')
  const fanOut = row('fan-out', '1000 listeners, one message after another')
  const idle = row('idle', '10000 syncs held')
  const [, now, before] = /(\d+) MB resident now, (\d+) MB before/.exec(idle.note ?? '') ?? []
  if (now === undefined || before === undefined)
    throw new Error('bench/RESULTS.md does not say what 10000 held syncs take')
  return {
    sendMs: number(send, 'server CPU ms/op'),
    sendPostgresMs: number(send, 'Postgres CPU ms/op'),
    deliveryMs: number(fanOut, 'server CPU ms/op'),
    quietSyncMs: number(row('noop-sync', '64 clients, 10 rooms'), 'server CPU ms/op'),
    eventDiskBytes: number(send, 'disk B/op'),
    heldSyncBytes: ((Number(now) - Number(before)) * 2 ** 20) / 10_000,
    restMb: number(row('idle', 'nobody connected'), 'server peak MB'),
    passingOnMs: Math.max(
      0,
      number(row('passed-on', 'messages, asked the other one'), 'server CPU ms/op') -
        number(row('passed-on', 'messages, asked the node that serves'), 'server CPU ms/op'),
    ),
    storedPerSecond: number(row('storage', 'message, rooms of 100,000 events'), 'per second'),
  }
}

const figure = (value: number): string => {
  const digits = value >= 10 || Number.isInteger(value) ? 0 : value < 1 ? 2 : 1
  return value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits })
}

/** No more digits than such a model deserves. */
const people = (count: number): string => figure(Number(count.toPrecision(2)))

const lineOf = (cells: readonly string[]) => `| ${cells.join(' | ')} |`

function tableOf(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [lineOf(head), lineOf(head.map(() => '---')), ...rows.map(lineOf)].join('\n')
}

/** The model in words and tables. */
export function modelText(c: Constants, h: Habits): string {
  const perEvent = c.sendMs + h.listeners * c.deliveryMs
  const communities = COMMUNITIES.map((users) => {
    const load = loadOf(users, c, h)
    return [
      figure(users),
      figure(load.eventsPerSecond),
      figure(load.held),
      figure(load.serverCores),
      figure(load.postgresCores),
      figure(load.memoryMb),
      figure(load.diskGbPerYear),
      shortages(users, c, h).join(', ') || 'nothing',
    ]
  })
  const one = loadOf(1, c, h)
  const share = one.postgresCores / (one.serverCores + one.postgresCores)
  const onePostgres = Math.floor((BUSY * c.storedPerSecond) / one.eventsPerSecond)
  const machines = MACHINES.map((cores) => {
    const today = peopleWithin({ server: 1, postgres: Math.max(1, cores - 1) }, c, h)
    const postgres = Math.max(cores * share, Math.min(1, cores / 2))
    // A node for each core: most messages come to another one than that which writes their room.
    const passing = { ...c, sendMs: c.sendMs + c.passingOnMs * (1 - 1 / (cores - 1)) }
    const all = Math.min(peopleWithin({ server: cores - postgres, postgres }, passing, h), onePostgres)
    return [`${cores}`, people(today), people(all), people(loadOf(all, c, h).eventsPerSecond)]
  })
  return [
    `- An event costs ${c.sendMs} ms in the server and ${c.sendPostgresMs} ms in Postgres, and ${c.deliveryMs} ms for each listener: with ${h.listeners} listeners`,
    `  ${figure(perEvent)} ms, so one core takes ${figure(Math.floor(1_000 / perEvent))} such events a second.`,
    `- A sync that finds nothing costs ${c.quietSyncMs} ms, and one that waits ${figure(c.heldSyncBytes / 1_024)} kB.`,
    `- Postgres stored ${figure(c.storedPerSecond)} events a second over one connection, on two cores. At ${BUSY * 100}% of that, ${people(onePostgres)} people are`,
    '  where one Postgres ends by this model, whatever the number of nodes.',
    `- A message that another node passes on to the one that writes costs ${figure(c.passingOnMs)} ms more.`,
    '',
    `Assumed: ${h.connected * 100}% of all people are connected in the busiest hour, each makes ${h.eventsPerDay} events a day, ${h.peak} times as many in that hour, an event has`,
    `${h.listeners} listeners, and a quiet sync waits ${h.patience} s. Processors are full at ${BUSY * 100}%.`,
    '',
    tableOf(
      [
        'people',
        'events/s',
        'syncs held',
        'cores, server',
        'cores, Postgres',
        'MB, server',
        'GB of events a year',
        'today too little of',
      ],
      communities,
    ),
    '',
    'What a machine takes, with Postgres on it:',
    '',
    tableOf(
      ['cores', 'people today: one node at work', 'people if all nodes were at work, on paper', 'events/s then'],
      machines,
    ),
    '',
    'Not in it: other servers, encryption keys, pushes, media, and the memory of rooms in use.',
  ].join('\n')
}

const USAGE = `npm run model [-- --write] [-- --connected 0.3 --eventsPerDay 40 --peak 4 --listeners 10 --patience 30]

Computes from the figures of bench/RESULTS.md what so many people need. --write puts it into docs/scaling.md.`

const BEGIN = '<!-- model: made by `npm run model -- --write` -->'
const END = '<!-- end of the model -->'

function main(words: readonly string[]): void {
  if (words.includes('--help')) {
    console.log(USAGE)
    return
  }
  const given = Object.keys(HABITS).flatMap((name) => {
    const at = words.indexOf(`--${name}`)
    return at < 0 ? [] : [[name, Number(words[at + 1])] as const]
  })
  if (given.some(([, value]) => !(value > 0))) throw new Error(USAGE)
  const results = readFileSync(join(PROJECT_ROOT, 'bench/RESULTS.md'), 'utf8')
  const text = modelText(constantsOf(results), { ...HABITS, ...Object.fromEntries(given) })
  if (!words.includes('--write')) {
    console.log(text)
    return
  }
  const file = join(PROJECT_ROOT, 'docs/scaling.md')
  const page = readFileSync(file, 'utf8')
  const [before, rest] = page.split(BEGIN)
  const [, after] = rest?.split(END) ?? []
  if (before === undefined || after === undefined) throw new Error(`docs/scaling.md has no place for it: ${BEGIN}`)
  writeFileSync(file, `${before}${BEGIN}\n\n${text}\n\n${END}${after}`)
}

if (process.argv[1]?.endsWith('model.ts')) main(process.argv.slice(2))
