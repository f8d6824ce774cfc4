import { setTimeout as delay } from 'node:timers/promises'

export type Phase = 'starting' | 'migrating' | 'running' | 'draining'

export interface Health {
  enter(phase: Phase): void
  /** From now on readiness also asks the database; `probe` rejects or hangs while that is away. */
  watch(probe: () => Promise<unknown>): void
  /** Undefined when requests can be served, else why not. */
  whyNotReady(): Promise<string | undefined>
}

const PROBE_TIMEOUT_MS = 2_000

export function createHealth(): Health {
  let phase: Phase = 'starting'
  let probe: () => Promise<unknown> = async () => {}
  return {
    enter(next) {
      phase = next
    },
    watch(next) {
      probe = next
    },
    async whyNotReady() {
      if (phase !== 'running') return phase
      const timeout = new AbortController()
      const late = delay(PROBE_TIMEOUT_MS, 'the database does not answer', { signal: timeout.signal, ref: false })
      try {
        return await Promise.race([
          probe().then(
            () => undefined,
            () => 'the database is away',
          ),
          late,
        ])
      } finally {
        late.catch(() => undefined)
        timeout.abort()
      }
    },
  }
}

export interface HealthAnswer {
  readonly status: 200 | 503
  readonly body: { readonly status: string; readonly reason?: string }
}

/** The answer to a health path, wherever it is asked; undefined for another path. */
export async function answerHealth(health: Health, path: string): Promise<HealthAnswer | undefined> {
  if (path === '/health/live') return { status: 200, body: { status: 'ok' } }
  if (path !== '/health/ready') return undefined
  const reason = await health.whyNotReady()
  return reason === undefined
    ? { status: 200, body: { status: 'ok' } }
    : { status: 503, body: { status: 'unavailable', reason } }
}
