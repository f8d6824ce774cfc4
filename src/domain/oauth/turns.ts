import { ProtocolError } from '../../core/errors.ts'
import { MAX_STEPS_WAITING, STEP_RETRY_MS } from '../limits/oauth.ts'

/**
 * Runs steps of sign-ins a few at a time, the others in the order in which they came. Each step is many small pieces of work: if very many
 * people sign in at once, they wait for each other, and those who send and sync wait for a few pieces only.
 */
export interface Turns {
  /** @throws ProtocolError `M_LIMIT_EXCEEDED` if too many wait already */
  run<Result>(step: () => Promise<Result>): Promise<Result>
}

export function createTurns(atOnce: number): Turns {
  const waiting: (() => void)[] = []
  let running = 0

  function leave(): void {
    const next = waiting.shift()
    // The next one in the queue takes over the place.
    if (next === undefined) running -= 1
    else next()
  }

  async function enter(): Promise<void> {
    if (running < atOnce) {
      running += 1
      return
    }
    if (waiting.length >= MAX_STEPS_WAITING) {
      const error = 'Very many people sign in just now. Try again in a few seconds.'
      throw new ProtocolError('M_LIMIT_EXCEEDED', error, { extra: { retry_after_ms: STEP_RETRY_MS } })
    }
    await new Promise<void>((resolve) => waiting.push(resolve))
  }

  return {
    async run(step) {
      await enter()
      try {
        return await step()
      } finally {
        leave()
      }
    },
  }
}
