import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/**
 * Keeps the engine's space for new objects at its smallest while the program is loaded. What is made then lives on; every collection that
 * finds so doubles the space, up to 32 MB, which an idle server would then keep.
 */
export function holdYoungGeneration(): void {
  setFlagsFromString('--semi-space-growth-factor=1')
}

/** From here on it grows with the load. */
export function releaseYoungGeneration(): void {
  setFlagsFromString('--semi-space-growth-factor=2')
}

/**
 * Gives back what only the start needed: a quarter of the heap by then. The engine does so by itself no sooner than it has grown a good
 * deal, which an idle server never does.
 */
export function giveBackWhatTheStartTook(): void {
  setFlagsFromString('--expose-gc')
  const collect: unknown = runInNewContext('gc')
  setFlagsFromString('--no-expose-gc')
  if (typeof collect !== 'function') return
  setFlagsFromString('--compact-on-every-full-gc')
  collect()
  setFlagsFromString('--no-compact-on-every-full-gc')
}
