import { setTimeout as pause } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Child, Ending } from './children.ts'

/** Nodes that one process started, and keeps running. */
export interface Family {
  /**
   * Starts the first one, and then the others, each when the one before takes requests.
   *
   * @returns how the first one ended, if it ended before that
   */
  start(): Promise<Ending | undefined>
  children(): readonly Child[]
  /** How often a node was started again after it ended without being asked. */
  accidents(): number
  /** Restarts one after another, the one that serves last. Each has to take requests before the next one stops. */
  restartInTurn(): Promise<void>
  /** Stops all: the one that serves last, after it has answered everything. */
  stop(): Promise<void>
}

export interface FamilyParts {
  readonly count: number
  readonly log: Logger
  /** Starts the process of a node. @param waitedMs how long it had to wait, because the one before ended by itself */
  begin(number: number, waitedMs: number): Child
  /** Called when one ended, unless all are stopping. */
  ended(child: Child): void
  /** How soon one is started again that ended by accident, the first time; shorter in tests. */
  readonly restartMs?: number
}

const RESTART_MS = 100
const MAX_RESTART_MS = 30_000
/** A node that ran for so long did not end because of how it began. */
const STEADY_MS = 60_000
const LOOK_MS = 50
/** The next one begins even if the one before takes longer than this. */
const NEXT_MS = 5_000

/** A node: one process after another. */
interface Slot {
  child: Child
}

export function createFamily({ count, log, begin, ended, restartMs = RESTART_MS }: FamilyParts): Family {
  const slots: Slot[] = []
  const keeping: Promise<void>[] = []
  const stopping = new AbortController()
  let accidents = 0
  let rolling: Promise<void> | undefined

  async function keep(slot: Slot): Promise<void> {
    for (let failures = 0; ; ) {
      let waitMs = 0
      const { child } = slot
      const begun = performance.now()
      const ending = await child.ended
      if (stopping.signal.aborted) return
      ended(child)
      if (!child.isAsked()) {
        accidents++
        failures = performance.now() - begun > STEADY_MS ? 1 : failures + 1
        waitMs = Math.min(MAX_RESTART_MS, restartMs * 2 ** (failures - 1))
        log.error({ node: child.number, ...ending, wait_ms: waitMs }, 'a node ended by itself; it is started again')
        await pause(waitMs, undefined, { signal: stopping.signal }).catch(() => {})
        if (stopping.signal.aborted) return
      }
      slot.child = begin(child.number, waitMs)
    }
  }

  function add(number: number): Slot {
    const slot = { child: begin(number, 0) }
    slots.push(slot)
    return slot
  }

  async function roll(): Promise<void> {
    const left = new Set(slots)
    while (left.size > 0 && !stopping.signal.aborted) {
      // Who serves may change meanwhile.
      const slot = [...left].find(({ child }) => !child.isServing()) ?? [...left][0]!
      left.delete(slot)
      const before = slot.child
      await before.stop(false)
      while (!stopping.signal.aborted && (slot.child === before || !(await slot.child.up))) await pause(LOOK_MS)
    }
  }

  return {
    async start() {
      const first = add(1)
      if (!(await first.child.up)) return first.child.ended
      keeping.push(keep(first))
      // One by one, as long as they take no time: many at once would take the processor from the one that serves.
      for (let number = 2; number <= count && !stopping.signal.aborted; number++) {
        const next = add(number)
        keeping.push(keep(next))
        await Promise.race([next.child.up, pause(NEXT_MS, undefined, { ref: false })])
      }
      return undefined
    },
    children: () => slots.map(({ child }) => child),
    accidents: () => accidents,
    restartInTurn() {
      rolling ??= roll().finally(() => {
        rolling = undefined
      })
      return rolling
    },
    async stop() {
      stopping.abort()
      const all = slots.map(({ child }) => child)
      const last = all.find((child) => child.isServing()) ?? all[0]
      await Promise.all(all.filter((child) => child !== last).map((child) => child.stop(false)))
      await last?.stop(true)
      await Promise.all(keeping)
    },
  }
}
