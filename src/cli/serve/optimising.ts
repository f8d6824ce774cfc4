import { setFlagsFromString } from 'node:v8'

/** The engine optimises a function after it ran this many bytes of bytecode a few times: twice what Node.js 20 comes with, and half. */
const AT_FIRST_BYTES = 135_000
const LATER_BYTES = 32_000
/** How much has to be done until it is worth it. */
const WORKED_MS = 1_000
const LOOK_EVERY_MS = 500

export interface OptimisingOptions {
  readonly workedMs?: number
  readonly everyMs?: number
  readonly setBudget?: (bytes: number) => void
}

/**
 * Has the engine optimise code late at first, and sooner than usual once the server has worked for a while. To be called once it is ready.
 *
 * What optimises runs beside the server. After a start, when nothing is optimised yet, it takes as much processor time as the first sync of
 * a client, and the database needs the other core just then. The later work pays for it many times over.
 */
export function optimiseOnceWorking(options: OptimisingOptions = {}): { stop(): void } {
  const { workedMs = WORKED_MS, everyMs = LOOK_EVERY_MS, setBudget = setInterruptBudget } = options
  const before = performance.eventLoopUtilization()
  setBudget(AT_FIRST_BYTES)
  const timer = setInterval(() => {
    if (performance.eventLoopUtilization(before).active < workedMs) return
    clearInterval(timer)
    setBudget(LATER_BYTES)
  }, everyMs).unref()
  return { stop: () => clearInterval(timer) }
}

function setInterruptBudget(bytes: number): void {
  setFlagsFromString(`--interrupt-budget=${bytes}`)
}
