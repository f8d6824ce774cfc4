import { getHeapSpaceStatistics, getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** When it is looked whether a load is over. */
const LOOK_EVERY_MS = 10_000
/** A server that is less busy than this has a moment for it. */
const QUIET = 0.1
/** Less is not worth the pause, nor the collections after it: the engine begins with a small space for new objects again. */
const WORTH_BYTES = 40 * 1024 * 1024

export interface SparingOptions {
  readonly everyMs?: number
  readonly collect?: () => void
  /** Bytes that the process has taken. */
  readonly taken?: () => number
}

/**
 * Gives back what a load took, once it is over. The engine looks for garbage when it needs memory; a server that has become quiet needs
 * none, and would stay as large as it was at its busiest.
 */
export function spareMemory(options: SparingOptions = {}): { stop(): void } {
  const { everyMs = LOOK_EVERY_MS, collect = collector(), taken = bytesTaken } = options
  let atRest = taken()
  let before = performance.eventLoopUtilization()
  const timer = setInterval(() => {
    const current = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(current, before)
    before = current
    const now = taken()
    // What a start leaves behind is not what it needs.
    atRest = Math.min(atRest, now)
    if (utilization > QUIET || now < atRest + WORTH_BYTES) return
    collect()
    atRest = taken()
  }, everyMs).unref()
  return { stop: () => clearInterval(timer) }
}

/** Garbage and free pages of the heap included, but not the space for new objects: any load makes it large again. */
function bytesTaken(): number {
  const spaces = getHeapSpaceStatistics().filter(({ space_name }) => !space_name.startsWith('new_'))
  return spaces.reduce((sum, { space_size }) => sum + space_size, getHeapStatistics().external_memory)
}

/** The engine's own, which it shows to contexts that are made while it is asked to. */
function collector(): () => void {
  setFlagsFromString('--expose-gc')
  const collect: () => void = runInNewContext('gc')
  setFlagsFromString('--no-expose-gc')
  return () => collect()
}
