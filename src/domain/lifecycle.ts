import type { Logger } from 'pino'

/** What runs beside the requests, or holds something that has to be given back. */
export interface LifecyclePart {
  /** As logs call it. */
  readonly name: string
  start?(): unknown
  /** Resolves once nothing of it runs any more. */
  stop?(): unknown
}

/** Starts all, in order: each may use those before it. Fails with the first that does. */
export async function startAll(parts: readonly LifecyclePart[]): Promise<void> {
  for (const part of parts) await part.start?.()
}

/** Stops all, the last one first. One that cannot be stopped is logged, and keeps none of the others running. */
export async function stopAll(parts: readonly LifecyclePart[], log: Pick<Logger, 'error'>): Promise<void> {
  for (const part of parts.toReversed()) {
    try {
      await part.stop?.()
    } catch (err) {
      log.error({ err, part: part.name }, 'a part of the server could not be stopped')
    }
  }
}

/** What runs from its start to its stop. @param begin begins, and gives what ends it */
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
