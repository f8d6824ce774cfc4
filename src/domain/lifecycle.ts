import type { Logger } from 'pino'

/** Something that runs beside the requests, or holds a resource that has to be released. */
export interface LifecyclePart {
  /** Its name in the logs. */
  readonly name: string
  start?(): unknown
  /** Resolves once it has stopped. */
  stop?(): unknown
}

/** Starts all parts in order: each may use those before it. Fails with the first one that fails. */
export async function startAll(parts: readonly LifecyclePart[]): Promise<void> {
  for (const part of parts) await part.start?.()
}

/** Stops all parts, the last one first. If one fails to stop, that is logged and the others are stopped all the same. */
export async function stopAll(parts: readonly LifecyclePart[], log: Pick<Logger, 'error'>): Promise<void> {
  for (const part of parts.toReversed()) {
    try {
      await part.stop?.()
    } catch (err) {
      log.error({ err, part: part.name }, 'a part of the server could not be stopped')
    }
  }
}

/** A part that runs from its start to its stop. @param begin starts it and returns what stops it */
export function worker(name: string, begin: () => { close(): unknown }): LifecyclePart {
  let running: { close(): unknown } | undefined
  return {
    name,
    start() {
      running = begin()
    },
    stop: () => running?.close(),
  }
}
