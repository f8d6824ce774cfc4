import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { chmod, chown, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../../test/support/free-port.ts'
import { waitUntil } from '../../test/support/wait.ts'

const ETCD = '/usr/bin/etcd'
const PATRONI = '/usr/bin/patroni'
const POSTGRES = '/usr/lib/postgresql'
const NEEDED = 'apt-get install --no-install-recommends patroni etcd-server postgresql haproxy'
const READY_MS = 120_000

/** Postgres servers that Patroni runs: one is the primary, and a commit waits until another one has it on its disk. */
export interface PatroniCluster {
  readonly version: string
  readonly size: number
  /** What HAProxy is told of each: its address, and where Patroni says whether it is the primary. */
  readonly servers: readonly string[]
  /** The number of the primary; undefined while there is none. */
  primary(): Promise<number | undefined>
  /** Ends a server and its Patroni at once, as when a machine loses its power. */
  killMachine(n: number): Promise<void>
  close(): Promise<void>
}

interface Account {
  readonly uid: number
  readonly gid: number
}

interface Member {
  readonly name: string
  readonly port: number
  readonly restPort: number
  readonly data: string
  process: ChildProcess
}

/** @throws Error that says what to install */
export async function startPatroniCluster(size: number): Promise<PatroniCluster> {
  if (![ETCD, PATRONI, POSTGRES].every((path) => existsSync(path))) throw new Error(`not everything is here: ${NEEDED}`)
  const account = accountOf('postgres')
  const directory = await mkdtemp(join(tmpdir(), 'hearth-patroni-'))
  await chmod(directory, 0o711)
  const programs: ChildProcess[] = []
  const members: Member[] = []
  const close = async () => {
    for (const member of members) await killMember(member)
    for (const program of programs) program.kill('SIGKILL')
    await rm(directory, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 })
  }
  try {
    const etcd = await startEtcd(directory)
    programs.push(etcd.process)
    for (let n = 0; n < size; n++) members.push(await startMember({ directory, account, etcdPort: etcd.port, n }))
    const primary = () => findPrimary(members)
    await waitUntil('a primary', async () => (await primary()) !== undefined, { timeoutMs: READY_MS, everyMs: 100 })
    await waitUntil('a synchronous standby', () => hasSynchronousStandby(members), {
      timeoutMs: READY_MS,
      everyMs: 100,
    })
    const version = execFileSync(PATRONI, ['--version'], { encoding: 'utf8' })
      .trim()
      .replace(/^patroni /, '')
    return {
      version,
      size,
      servers: members.map(({ port, restPort }) => `127.0.0.1:${port} check port ${restPort}`),
      primary,
      killMachine: (n) => killMember(members[n]!),
      close,
    }
  } catch (error) {
    await close()
    throw error
  }
}

/** Postgres refuses to run as root. */
function accountOf(name: string): Account | undefined {
  if (process.getuid?.() !== 0) return undefined
  const id = (flag: string) => Number(execFileSync('id', [flag, name], { encoding: 'utf8' }))
  return { uid: id('-u'), gid: id('-g') }
}

async function startEtcd(directory: string): Promise<{ readonly process: ChildProcess; readonly port: number }> {
  const [port, peerPort] = [await freePort(), await freePort()]
  const [url, peerUrl] = [`http://127.0.0.1:${port}`, `http://127.0.0.1:${peerPort}`]
  const child = spawn(
    ETCD,
    [
      ...['--data-dir', join(directory, 'etcd'), '--name', 'one', '--initial-cluster', `one=${peerUrl}`],
      ...['--listen-client-urls', url, '--advertise-client-urls', url],
      ...['--listen-peer-urls', peerUrl, '--initial-advertise-peer-urls', peerUrl],
    ],
    { stdio: 'ignore' },
  )
  await waitUntil('etcd', () => isOk(`${url}/health`))
  return { process: child, port }
}

async function startMember(parts: {
  readonly directory: string
  readonly account: Account | undefined
  readonly etcdPort: number
  readonly n: number
}): Promise<Member> {
  const { directory, account, etcdPort, n } = parts
  const name = `pg${n + 1}`
  const place = join(directory, name)
  await mkdir(place, { mode: 0o700 })
  if (account) await chown(place, account.uid, account.gid)
  const [port, restPort, data] = [await freePort(), await freePort(), join(place, 'data')]
  const file = join(place, 'patroni.json')
  // JSON is YAML.
  await writeFile(file, JSON.stringify(settings({ name, port, restPort, data, place, etcdPort })))
  if (account) await chown(file, account.uid, account.gid)
  const options = { cwd: place, stdio: 'ignore', ...account, env: { PATH: process.env.PATH, HOME: place } } as const
  const member = { name, port, restPort, data, process: spawn(PATRONI, [file], options) }
  await waitUntil(`${name}`, () => isOk(`http://127.0.0.1:${restPort}/liveness`), { timeoutMs: READY_MS })
  return member
}

function settings(parts: {
  readonly name: string
  readonly port: number
  readonly restPort: number
  readonly data: string
  readonly place: string
  readonly etcdPort: number
}): object {
  const { name, port, restPort, data, place, etcdPort } = parts
  const password = 'only on loopback, for minutes'
  return {
    scope: 'hearth',
    name,
    restapi: { listen: `127.0.0.1:${restPort}`, connect_address: `127.0.0.1:${restPort}` },
    etcd3: { hosts: [`127.0.0.1:${etcdPort}`] },
    bootstrap: {
      dcs: {
        // The shortest that Patroni takes.
        ...{ ttl: 20, loop_wait: 2, retry_timeout: 3, maximum_lag_on_failover: 1_048_576 },
        // A commit is acknowledged once a standby has it too, or never.
        ...{ synchronous_mode: true, synchronous_mode_strict: true },
        postgresql: { use_pg_rewind: false, parameters: { max_connections: 100 } },
      },
      initdb: [{ encoding: 'UTF8' }, { locale: 'C' }, 'data-checksums'],
    },
    postgresql: {
      listen: `127.0.0.1:${port}`,
      connect_address: `127.0.0.1:${port}`,
      data_dir: data,
      bin_dir: join(POSTGRES, newestPostgres(), 'bin'),
      authentication: { superuser: { username: 'postgres', password }, replication: { username: 'copy', password } },
      parameters: { unix_socket_directories: place },
      pg_hba: ['local all all trust', 'host all all 127.0.0.1/32 trust', 'host replication copy 127.0.0.1/32 trust'],
    },
  }
}

function newestPostgres(): string {
  const names = execFileSync('ls', [POSTGRES], { encoding: 'utf8' }).trim().split('\n').map(Number)
  return `${Math.max(...names)}`
}

async function findPrimary(members: readonly Member[]): Promise<number | undefined> {
  const are = await Promise.all(members.map(({ restPort }) => isOk(`http://127.0.0.1:${restPort}/primary`)))
  const found = are.indexOf(true)
  return found < 0 ? undefined : found
}

async function hasSynchronousStandby(members: readonly Member[]): Promise<boolean> {
  const are = await Promise.all(members.map(({ restPort }) => isOk(`http://127.0.0.1:${restPort}/synchronous`)))
  return are.includes(true)
}

async function killMember({ process: patroni, data }: Member): Promise<void> {
  patroni.kill('SIGKILL')
  const [first] = (await readFile(join(data, 'postmaster.pid'), 'utf8').catch(() => '')).split('\n')
  const postmaster = Number(first)
  if (!(postmaster > 0)) return
  for (const pid of [postmaster, ...childrenOf(postmaster)]) kill(pid)
}

function childrenOf(pid: number): number[] {
  try {
    return execFileSync('ps', ['-o', 'pid=', '--ppid', `${pid}`], { encoding: 'utf8' })
      .trim()
      .split(/\s+/)
      .map(Number)
  } catch {
    return []
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended by itself.
  }
}

const isOk = (url: string): Promise<boolean> =>
  fetch(url, { signal: AbortSignal.timeout(1_000) }).then(
    ({ ok }) => ok,
    () => false,
  )
