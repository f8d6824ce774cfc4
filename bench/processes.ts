import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

/** Figures of other processes, as Linux shows them in /proc; on other systems there are none. */
export interface Usage {
  readonly cpuSeconds: number
  readonly residentMb: number
  readonly peakMb: number
  readonly proportionalMb: number
}

const CLOCK_TICKS_PER_SECOND = 100

/** A process with all its descendants. */
export function usageOfTree(pid: number | undefined): Usage | undefined {
  if (pid === undefined || pid <= 0) return undefined
  const all = treeOf(pid).map(usageOf)
  if (all.length === 0) return undefined
  const sum = (figure: keyof Usage) => all.reduce((total, usage) => total + usage[figure], 0)
  return {
    cpuSeconds: sum('cpuSeconds') + endedChildrenSeconds(pid),
    residentMb: sum('residentMb'),
    peakMb: sum('peakMb'),
    proportionalMb: sum('proportionalMb'),
  }
}

export function usageOfProcess(pid: number | undefined): Usage | undefined {
  if (pid === undefined || pid <= 0 || statOf(pid) === undefined) return undefined
  return usageOf(pid)
}

/** What a process had written to the disk, without its children. */
export const writtenBytesOf = (pid: number): number =>
  Number(/^write_bytes: (\d+)/m.exec(read(`/proc/${pid}/io`))?.[1] ?? 0)

/** Milliseconds for which the main thread of a process was ready to run and had no processor. */
export const runDelayMsOf = (pid: number): number => Number(read(`/proc/${pid}/schedstat`).split(' ')[1] ?? 0) / 1e6

/** Since the machine started: what all its processors could have done, and for how much of that they had nothing to do. In seconds. */
export function processorTimes(): { readonly all: number; readonly idle: number } {
  const [line = ''] = read('/proc/stat').split('\n')
  // Of the ten, the last two are in the first two too.
  const times = line.trim().split(/\s+/).slice(1, 9).map(Number)
  const [idle = 0, waitingForDisks = 0] = times.slice(3, 5)
  const all = times.reduce((total, ticks) => total + ticks, 0)
  return { all: all / CLOCK_TICKS_PER_SECOND, idle: (idle + waitingForDisks) / CLOCK_TICKS_PER_SECOND }
}

/** How many sockets a process has open. */
export function socketsOf(pid: number): number {
  return list(`/proc/${pid}/fd`).filter((fd) => linkOf(`/proc/${pid}/fd/${fd}`).startsWith('socket:')).length
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path)
  } catch {
    return ''
  }
}

function usageOf(pid: number): Usage {
  const status = read(`/proc/${pid}/status`)
  return {
    cpuSeconds: ticks(pid, USER_TIME, SYSTEM_TIME),
    residentMb: kilobytes(status, 'VmRSS') / 1024,
    peakMb: kilobytes(status, 'VmHWM') / 1024,
    proportionalMb: kilobytes(read(`/proc/${pid}/smaps_rollup`), 'Pss') / 1024,
  }
}

/** Positions in /proc/PID/stat after the command name, counted from the state. */
const PARENT = 1
const USER_TIME = 11
const SYSTEM_TIME = 12
const CHILDREN_USER_TIME = 13
const CHILDREN_SYSTEM_TIME = 14

function ticks(pid: number, ...fields: readonly number[]): number {
  const stat = statOf(pid)
  return fields.reduce((total, field) => total + Number(stat?.[field] ?? 0), 0) / CLOCK_TICKS_PER_SECOND
}

/** Seconds that the children of a process took which have ended, and theirs. */
export const endedChildrenOf = (pid: number): { readonly user: number; readonly system: number } => ({
  user: ticks(pid, CHILDREN_USER_TIME),
  system: ticks(pid, CHILDREN_SYSTEM_TIME),
})

function endedChildrenSeconds(pid: number): number {
  const { user, system } = endedChildrenOf(pid)
  return user + system
}

function statOf(pid: number): string[] | undefined {
  const stat = read(`/proc/${pid}/stat`)
  return stat === '' ? undefined : stat.slice(stat.lastIndexOf(')') + 2).split(' ')
}

function treeOf(root: number): number[] {
  const parents = new Map<number, number>()
  for (const entry of list('/proc')) {
    const pid = Number(entry)
    if (Number.isInteger(pid)) parents.set(pid, Number(statOf(pid)?.[PARENT]))
  }
  const tree = parents.has(root) ? [root] : []
  for (const parent of tree) for (const [pid, of] of parents) if (of === parent) tree.push(pid)
  return tree
}

const kilobytes = (text: string, name: string) => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(text)?.[1] ?? 0)

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

function list(path: string): string[] {
  try {
    return readdirSync(path)
  } catch {
    return []
  }
}
