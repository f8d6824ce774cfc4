import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8'
import { collectNewObjects, giveBackMemory, giveBackPages } from './give-back.ts'

/** How long after a start its last pieces of work are done: connections, indexes. */
const SETTLED_MS = 2_000
const LOOK_EVERY_MS = 250
/** A server that is busier than this share of the time, twice in a row, has clients: the first time it may be the end of the start. */
const BUSY = 0.3

export interface SettlingOptions {
  readonly settledMs?: number
  readonly everyMs?: number
  readonly giveBack?: () => void
  readonly release?: () => void
}

/**
 * Keeps the engine's space for new objects at its smallest while the program is loaded. Objects of that time stay alive, and a collection
 * in which most objects stay alive doubles the space, up to 32 MB, which an idle server would then keep.
 */
export function holdYoungGeneration(): void {
  setFlagsFromString('--semi-space-growth-factor=1')
}

/** Lets the space grow with the load from here on. */
function releaseYoungGeneration(): void {
  setFlagsFromString('--semi-space-growth-factor=2')
}

/**
 * Lets the space grow as soon as clients come, or else once the start is over and what it left behind is given back. A first sync makes so
 * many objects that live on that in the smallest space they would be copied dozens of times.
 */
export function releaseOnceSettled(options: SettlingOptions = {}): { asked(): void; stop(): void } {
  const { settledMs = SETTLED_MS, everyMs = LOOK_EVERY_MS } = options
  const { giveBack = giveBackMemory, release = releaseYoungGeneration } = options
  const settledAt = performance.now() + settledMs
  let before = performance.eventLoopUtilization()
  let wasBusy = false
  const timer = setInterval(() => {
    const current = performance.eventLoopUtilization()
    const isBusy = performance.eventLoopUtilization(current, before).utilization > BUSY
    before = current
    const hasClients = isBusy && wasBusy
    wasBusy = isBusy
    if (!hasClients && performance.now() < settledAt) return
    clearInterval(timer)
    if (!hasClients) giveBack()
    release()
  }, everyMs).unref()
  return { asked: release, stop: () => clearInterval(timer) }
}

const REST_LOOK_EVERY_MS = 200
/** Less work than this share of the time: nobody waits. */
const RESTING = 0.1
/** It is worth it from here on. */
const MANY_NEW_BYTES = 3 * 1024 * 1024

export interface RestOptions {
  readonly everyMs?: number
  readonly newBytes?: () => number
  readonly collect?: () => void
}

/**
 * Collects new objects while the server rests. The engine does so only when their space is full, which is in the middle of the next work: for
 * most of a thousand clients that wait for the same message it would be the pause before their answer.
 */
export function collectWhileResting(options: RestOptions = {}): { stop(): void } {
  const { everyMs = REST_LOOK_EVERY_MS, newBytes = bytesOfNewObjects, collect = collectNewObjects } = options
  let before = performance.eventLoopUtilization()
  const timer = setInterval(() => {
    const current = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(current, before)
    before = current
    if (utilization < RESTING && newBytes() >= MANY_NEW_BYTES) collect()
  }, everyMs).unref()
  return { stop: () => clearInterval(timer) }
}

function bytesOfNewObjects(): number {
  return getHeapSpaceStatistics().find(({ space_name: name }) => name === 'new_space')?.space_used_size ?? 0
}

/** So much of bodies that are still coming means that they come slowly. Those of busy times come quickly, and wait for their answer. */
const MANY_BODY_BYTES = 8 * 1024 * 1024
const BODIES_LOOK_EVERY_MS = 1_000

export interface BodySparingOptions {
  readonly everyMs?: number
  readonly hold?: () => void
  readonly release?: () => void
  readonly giveBack?: () => void
}

/**
 * While many bodies of requests come slowly, nothing else takes more memory: the space for new objects does not grow, and what pieces of
 * bodies left free goes back to the system.
 *
 * @param arrivingBytes what has come of bodies that have not come whole
 */
export function spareWhileBodiesArrive(
  arrivingBytes: () => number,
  options: BodySparingOptions = {},
): { stop(): void } {
  const { everyMs = BODIES_LOOK_EVERY_MS, hold = holdYoungGeneration } = options
  const { release = releaseYoungGeneration, giveBack = giveBackPages } = options
  let isHeld = false
  const timer = setInterval(() => {
    const areMany = arrivingBytes() >= MANY_BODY_BYTES
    if (areMany !== isHeld) (areMany ? hold : release)()
    isHeld = areMany
    if (areMany) giveBack()
  }, everyMs).unref()
  return { stop: () => clearInterval(timer) }
}
