import { mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Short, so that what is measured does not wait for long in one piece. */
const PERIOD_US = 20_000

/** The controller of Linux that bounds what processes get of the processors, in either version. */
interface Controller {
  /** Where groups of processes are, and where new ones may be made. */
  readonly root: string
  readonly directory: string
  /** How a quota is written: file and text. */
  readonly quota: (us: number) => readonly (readonly [file: string, text: string])[]
  /** What leads to a process's own group in the list of its groups. */
  readonly own: RegExp
}

/** Why no process can be given a share here; undefined if it can. */
export function whyNoShares(): string | undefined {
  const found = controller()
  if (found === undefined) return 'Linux with the cgroup controller `cpu` is needed'
  try {
    new Group(found, 'trial', 1).remove()
    return undefined
  } catch (error) {
    return `a group below ${found.directory} is needed, as root can make it: ${(error as Error).message}`
  }
}

/**
 * Gives each of these processes so much of one processor during the work and no more, whatever else runs. Nobody else is bounded.
 *
 * @param share 0.5 for half a processor
 */
export async function withShares<T>(pids: readonly number[], share: number, work: () => Promise<T>): Promise<T> {
  const groups: Group[] = []
  try {
    for (const pid of pids) {
      const group = new Group(controller()!, `${pid}`, share)
      groups.push(group)
      group.take(pid)
    }
    return await work()
  } finally {
    for (const group of groups) group.remove()
  }
}

class Group {
  readonly #controller: Controller
  readonly #directory: string
  #taken: { readonly pid: number; readonly from: string } | undefined

  /** @throws Error of the file system if it cannot be made */
  constructor(found: Controller, name: string, share: number) {
    this.#controller = found
    this.#directory = join(found.directory, `hearth-bench-${process.pid}-${name}`)
    mkdirSync(this.#directory)
    try {
      for (const [file, text] of found.quota(share * PERIOD_US)) writeFileSync(join(this.#directory, file), text)
    } catch (error) {
      this.remove()
      throw error
    }
  }

  take(pid: number): void {
    const { root, own } = this.#controller
    const from = join(root, own.exec(read(`/proc/${pid}/cgroup`))?.[1] ?? '')
    move(pid, this.#directory)
    this.#taken = { pid, from }
  }

  remove(): void {
    if (this.#taken !== undefined) move(this.#taken.pid, this.#taken.from)
    rmdirSync(this.#directory)
  }
}

function move(pid: number, directory: string): void {
  try {
    writeFileSync(join(directory, 'cgroup.procs'), `${pid}`)
  } catch (error) {
    // It has ended.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

/** Of version 1. */
const OWN_OF_CPU = /^\d+:(?:[^:\n]*,)?cpu(?:,[^:\n]*)?:(.*)$/m

function controller(): Controller | undefined {
  for (const line of read('/proc/self/mounts').split('\n')) {
    const [, root = '', type, options = ''] = line.split(' ')
    if (type === 'cgroup' && options.split(',').includes('cpu'))
      return {
        root,
        directory: join(root, OWN_OF_CPU.exec(read('/proc/self/cgroup'))?.[1] ?? ''),
        quota: (us) => [
          ['cpu.cfs_period_us', `${PERIOD_US}`],
          ['cpu.cfs_quota_us', `${us}`],
        ],
        own: OWN_OF_CPU,
      }
    if (type === 'cgroup2' && read(join(root, 'cgroup.controllers')).split(/\s+/).includes('cpu'))
      return { root, directory: root, quota: (us) => [['cpu.max', `${us} ${PERIOD_US}`]], own: /^0::(.*)$/m }
  }
  return undefined
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
