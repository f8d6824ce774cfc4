import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import type { Binaries } from './binaries.ts'

export interface Owner {
  readonly uid: number
  readonly gid: number
}

/** How Postgres programs are run. Postgres refuses to run as root, so root hands them to an account without rights. */
export interface Account {
  readonly name: string
  /** Whom the files must belong to; undefined leaves them as they are. */
  readonly owner: Owner | undefined
  run(file: string, args: readonly string[], options: SpawnOptions): ChildProcess
}

export const FALLBACK_OWNER: Owner = { uid: 65_534, gid: 65_534 }

/** The first way that can execute the binaries and get as far as `parent`, the directory above the cluster's. */
export async function chooseAccount(uid: number, binaries: Binaries, parent: string): Promise<Account> {
  const failures: string[] = []
  for (const account of await candidates(uid)) {
    try {
      await probe(account, binaries, parent)
      return account
    } catch (error) {
      failures.push(`  ${account.name}: ${(error as Error).message}`)
    }
  }
  throw new Error(
    `the embedded Postgres cannot run here. Tried:\n${failures.join('\n')}\nStart Hearth as an ordinary user, put its folder and data_dir where every user may enter (not under /root), or set database.url.`,
  )
}

async function candidates(uid: number): Promise<Account[]> {
  if (uid !== 0) return [asIs(), inUserNamespace(undefined)]
  const owner = await nobody()
  return [asUser(owner), withCapabilities(owner), inUserNamespace({ uid: 0, gid: 0 })]
}

async function nobody(): Promise<Owner> {
  const passwd = await readFile('/etc/passwd', 'utf8').catch(() => '')
  const fields = passwd
    .split('\n')
    .find((line) => line.startsWith('nobody:'))
    ?.split(':')
  return fields === undefined ? FALLBACK_OWNER : { uid: Number(fields[2]), gid: Number(fields[3]) }
}

const asIs = (): Account => ({ name: 'as the user of this process', owner: undefined, run: spawn })

const asUser = (owner: Owner): Account => ({
  name: `as user id ${owner.uid}`,
  owner,
  run: (file, args, options) => spawn(file, args, { ...options, uid: owner.uid, gid: owner.gid }),
})

/** Without root's identity but able to pass directories closed to others, such as /root; `access(2)` sees that right only with the fixup off. */
const withCapabilities = (owner: Owner): Account => ({
  name: `as user id ${owner.uid} with the right to pass closed directories`,
  owner,
  run: (file, args, options) => {
    const identity = [`--reuid=${owner.uid}`, `--regid=${owner.gid}`, '--clear-groups']
    const rights = ['--inh-caps=+dac_override', '--ambient-caps=+dac_override', '--securebits=+no_setuid_fixup']
    return spawn('setpriv', [...identity, ...rights, '--', file, ...args], options)
  },
})

/** The same rights on files, under a user id that Postgres accepts. */
const inUserNamespace = (owner: Owner | undefined): Account => ({
  name: 'in a user namespace',
  owner,
  run: (file, args, options) => {
    const mapping = [`--map-user=${FALLBACK_OWNER.uid}`, `--map-group=${FALLBACK_OWNER.gid}`]
    return spawn('unshare', ['--user', ...mapping, '--', file, ...args], options)
  },
})

/** initdb needs a user id with a name, and looks at its neighbour by `access(2)`, as `test` does. */
const PROBE = 'id -un >/dev/null && test -x "$1" && "$1" --version >/dev/null && cd "$2"'

async function probe(account: Account, binaries: Binaries, parent: string): Promise<void> {
  const child = account.run('sh', ['-c', PROBE, 'sh', binaries.postgres, parent], {
    cwd: '/',
    env: childEnvironment(binaries),
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const { code, stderr } = await finished(child)
  if (code !== 0) throw new Error(stderr.trim().split('\n').at(-1) || `no access to ${binaries.postgres}`)
}

/** The environment of a Postgres program, without our own variables. */
export function childEnvironment({ libraryPath }: Binaries): NodeJS.ProcessEnv {
  const path = libraryPath.join(':')
  const libraries = path === '' ? {} : { LD_LIBRARY_PATH: path }
  return { PATH: '/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin', LC_ALL: 'C', TZ: 'UTC', ...libraries }
}

/** Waits for a child; a program that cannot be started counts as failed. */
export function finished(child: ChildProcess): Promise<{ code: number | null; stderr: string }> {
  let stderr = ''
  child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
    stderr = (stderr + chunk).slice(-4_096)
  })
  return new Promise((resolve) => {
    child.once('error', (error) => resolve({ code: null, stderr: error.message }))
    child.once('close', (code) => resolve({ code, stderr }))
  })
}
