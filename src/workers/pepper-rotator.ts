import type { Logger } from 'pino'
import type { Config } from '../config/schema.ts'
import type { PepperRotation } from '../domain/identity/pepper-rotation.ts'

/** Replaces the pepper of lookups when it is old enough, and finishes interrupted rotations. */
export interface PepperRotator {
  close(): Promise<void>
}

const EVERY_MS = 300_000

export function startPepperRotator(deps: {
  readonly config: Pick<Config, 'identity'>
  readonly rotation: PepperRotation
  readonly log: Logger
}): PepperRotator {
  const { config, rotation, log } = deps
  const hours = config.identity.lookup.pepper_hours
  const minAgeMs = hours === 0 ? Number.POSITIVE_INFINITY : hours * 3_600_000
  let closed = false

  async function check(): Promise<void> {
    try {
      const bindings = await rotation.rotate({ minAgeMs, stop: () => closed })
      if (bindings !== undefined) log.info({ bindings }, 'the pepper of lookups was replaced')
    } catch (error) {
      log.warn({ err: error }, 'the pepper of lookups was not replaced; it will be tried again')
    }
  }

  let running = check()
  const timer = setInterval(() => {
    running = running.then(check)
  }, EVERY_MS).unref()

  return {
    async close() {
      closed = true
      clearInterval(timer)
      await running
    },
  }
}
