import { setTimeout as delay } from 'node:timers/promises'

export type Phase = 'starting' | 'migrating' | 'standing by' | 'running' | 'draining'

export interface Health {
  enter(phase: Phase): void
  /** From now on readiness also depends on `probe`: it gives false, or hangs, while the database is away, or no node serves. */
  watch(probe: () => Promise<boolean>): void
  /** Undefined if requests can be served, else the reason. */
  whyNotReady(): Promise<string | undefined>
}

/** After this it says that the database, or the node that serves, does not answer. */
export const PROBE_TIMEOUT_MS = 4_000

export function createHealth(): Health {
  let phase: Phase = 'starting'
  let probe: () => Promise<boolean> = async () => true
  return {
    enter(next) {
      phase = next
    },
    watch(next) {
      probe = next
    },
    async whyNotReady() {
      if (phase !== 'running' && phase !== 'standing by') return phase
      const answered = new AbortController()
      const late = delay(PROBE_TIMEOUT_MS, false, { signal: answered.signal, ref: false }).catch(() => false)
      const isAnswering = await Promise.race([probe(), late])
      answered.abort()
      if (isAnswering) return undefined
      return phase === 'running' ? 'the database does not answer' : 'no node serves'
    },
  }
}

export interface HealthAnswer {
  readonly status: 200 | 503
  readonly body: { readonly status: string; readonly reason?: string }
}

/** The answer to a health path, on every listener; undefined for another path. */
export async function answerHealth(
  health: Pick<Health, 'whyNotReady'>,
  path: string,
): Promise<HealthAnswer | undefined> {
  if (path === '/health/live') return { status: 200, body: { status: 'ok' } }
  if (path !== '/health/ready') return undefined
  const reason = await health.whyNotReady()
  return reason === undefined
    ? { status: 200, body: { status: 'ok' } }
    : { status: 503, body: { status: 'unavailable', reason } }
}
