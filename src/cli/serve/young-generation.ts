import { setFlagsFromString } from 'node:v8'

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
