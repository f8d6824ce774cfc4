import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { constants, setPriority } from 'node:os'

const LOWEST = constants.priority.PRIORITY_LOW
/** Not the very lowest: others may wait for a lock that a backend holds, so it has to come to its turn. */
const LOW = constants.priority.PRIORITY_BELOW_NORMAL

/** Gives this process, or a Postgres backend of this machine, a low priority for the processor. Failures are ignored. */
export function giveWay(backend?: number): void {
  if (backend === undefined) {
    lowerThreads('self', LOWEST)
    return
  }
  // The number may be that of another machine's process.
  if (!read(`/proc/${backend}/cmdline`).startsWith('postgres:')) return
  lowerThreads(String(backend), LOW)
  // Each backend is a session of its own, and Linux may share the processor among sessions first.
  attempt(() => writeFileSync(`/proc/${backend}/autogroup`, String(LOW)))
}

/** Lets a process that was just started give way while it reads its program, too. */
export function giveWayFromStart(pid: number | undefined): void {
  if (pid !== undefined) attempt(() => setPriority(pid, LOWEST))
}

/** On Linux a priority is that of a thread: those that compress were there before. Elsewhere it is that of the process. */
function lowerThreads(process: string, priority: number): void {
  const threads = attempt(() => readdirSync(`/proc/${process}/task`)) ?? []
  for (const thread of threads) attempt(() => setPriority(Number(thread), priority))
  if (process === 'self') attempt(() => setPriority(priority))
}

function read(path: string): string {
  return attempt(() => readFileSync(path, 'latin1')) ?? ''
}

function attempt<Result>(work: () => Result): Result | undefined {
  try {
    return work()
  } catch {
    return undefined
  }
}
