import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from './free-port.ts'
import { PROJECT_ROOT } from './project.ts'
import { waitUntil } from './wait.ts'

const PROGRAM = '/usr/sbin/haproxy'

/** Where Debian's HAProxy is not installed, a test says `it.skipIf(!hasHaproxy())`. */
export function hasHaproxy(): boolean {
  if (existsSync(PROGRAM)) return true
  console.warn('HAProxy is not installed: the tests of several nodes behind it are skipped')
  return false
}

/** A line of its statistics, by the names of its columns: `svname`, `status`, `hrsp_5xx` and many more. */
export type HaproxyRow = Readonly<Record<string, string>>

export interface Haproxy {
  readonly port: number
  statistics(): Promise<HaproxyRow[]>
  /** What it has logged so far: a line for each request or connection that has ended, and for each change of a server. */
  log(): string
  close(): Promise<void>
}

/**
 * Starts HAProxy with an example of ours, in which nothing differs but addresses and the number of connections.
 *
 * @param example a file of contrib/haproxy/
 * @param servers what follows the name in each `server` line: an address, and the port of checks if it is another one
 */
export async function startHaproxy(example: string, servers: readonly string[]): Promise<Haproxy> {
  const directory = await mkdtemp(join(tmpdir(), 'hearth-haproxy-'))
  const [port, socket] = [await freePort(), join(directory, 'admin.sock')]
  const file = join(directory, 'haproxy.cfg')
  const text = await readFile(join(PROJECT_ROOT, 'contrib/haproxy', example), 'utf8')
  await writeFile(file, withAddresses(text, { port, socket, servers }))
  const child = spawn(PROGRAM, ['-db', '-f', file], { stdio: ['ignore', 'pipe', 'pipe'] })
  let log = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (piece) => (log += piece))
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  await waitUntil('HAProxy', () => hasStarted(child, socket, () => log))
  return {
    port,
    statistics: async () => rowsOf(await ask(socket, 'show stat')),
    log: () => log,
    async close() {
      child.kill('SIGKILL')
      await ended
      await rm(directory, { recursive: true, force: true })
    },
  }
}

function withAddresses(
  text: string,
  { port, socket, servers }: { port: number; socket: string; servers: readonly string[] },
): string {
  const lines: string[] = []
  let left = [...servers]
  let isBound = false
  for (const line of text.split('\n')) {
    const indent = line.slice(0, line.search(/\S|$/))
    if (/^\s*log \//.test(line)) lines.push(`${indent}log stdout format raw local0`)
    // A test may not open that many files.
    else if (/^\s*maxconn /.test(line)) lines.push(`${indent}maxconn 2000`)
    else if (/^\s*stats socket/.test(line)) lines.push(`${indent}stats socket ${socket}`)
    else if (/^\s*bind /.test(line)) {
      if (!isBound) lines.push(`${indent}bind 127.0.0.1:${port}`)
      isBound = true
    } else if (/^\s*server /.test(line)) {
      lines.push(...left.map((address, n) => `${indent}server server${n + 1} ${address}`))
      left = []
    } else lines.push(line)
  }
  if (!isBound || left.length > 0) throw new Error('the example has no bind or no server line')
  return lines.join('\n')
}

async function hasStarted(child: ChildProcess, socket: string, log: () => string): Promise<boolean> {
  if (child.exitCode !== null) throw new Error(`HAProxy does not start: ${log()}`)
  return ask(socket, 'show info').then(
    () => true,
    () => false,
  )
}

function ask(socket: string, command: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let answer = ''
    const connection = connect(socket, () => connection.write(`${command}\n`))
    connection.setEncoding('utf8').on('data', (piece: string) => (answer += piece))
    connection.once('end', () => resolve(answer))
    connection.once('error', reject)
  })
}

function rowsOf(csv: string): HaproxyRow[] {
  const [head = '', ...lines] = csv.trim().split('\n')
  const names = head.replace(/^# /, '').split(',')
  return lines.map((line) => Object.fromEntries(line.split(',').map((value, at) => [names[at] ?? '', value])))
}
