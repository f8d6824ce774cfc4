import { setFlagsFromString } from 'node:v8'

/**
 * Keeps the engine's space for new objects at its smallest while the program is loaded. Objects of that time stay alive, and a collection
 * in which most objects stay alive doubles the space, up to 32 MB, which an idle server would then keep.
 */
export function holdYoungGeneration(): void {
  setFlagsFromString('--semi-space-growth-factor=1')
}

/** Lets the space grow with the load from here on. */
export function releaseYoungGeneration(): void {
  setFlagsFromString('--semi-space-growth-factor=2')
}
