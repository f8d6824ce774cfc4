import type { Logger } from 'pino'
import type { ANTISPAM_QUESTIONS } from '../../config/moderation.ts'
import type { Config } from '../../config/schema.ts'
import { ProtocolError } from '../../core/errors.ts'
import type { JsonObject } from '../../core/json.ts'
import type { GuardedClient } from '../../outbound/http.ts'
import { type AntispamVerdict, askAntispam } from '../../outbound/verdicts/antispam.ts'
import { AskingPlaces } from '../asking-places.ts'
import type { Clock } from '../clock.ts'
import { ANTISPAM_REST_MS, MAX_ANTISPAM_AT_ONCE, MAX_ANTISPAM_BYTES } from '../limits/moderation.ts'

export type AntispamQuestion = (typeof ANTISPAM_QUESTIONS)[number]

/** The operator's service that may refuse what people do. */
export interface Antispam {
  /** Whether it is asked this. */
  asks(question: AntispamQuestion): boolean
  /**
   * Resolves if it is allowed, or not answered and answers are optional, after at most twice the time for an answer. A service that did not answer, and does not answer a ping either, is
   * left alone for a few seconds, so that nobody else waits for it. One that does had trouble with that question only.
   *
   * @throws ProtocolError `M_FORBIDDEN` with the service's words; 503 `M_UNKNOWN` if there is no answer and one is needed
   */
  ask(question: AntispamQuestion, body: JsonObject): Promise<void>
}

/** Askers share all places. */
const EVERYBODY = 0
/** The least time that the service gets for a question, however long the question has waited for a place. */
const LEAST_MS = 50

const NOBODY: Antispam = { asks: () => false, ask: async () => {} }

export function createAntispam(parts: {
  readonly config: Pick<Config, 'moderation'>
  readonly client: Pick<GuardedClient, 'request'>
  readonly clock: Clock
  readonly log: Logger
}): Antispam {
  const { client, clock, log } = parts
  const { url, token, questions, timeout_ms: timeoutMs, fail_open: failsOpen } = parts.config.moderation.antispam
  if (url === undefined) return NOBODY
  const asked = new Set<AntispamQuestion>(questions)
  const base = url.replace(/\/$/, '')
  const places = new AskingPlaces(MAX_ANTISPAM_AT_ONCE)
  let restsUntil = 0
  /** While it is sent a ping, the next questions wait for what comes of it: who makes it fail once must not open the door for all others. */
  let pinging: Promise<void> | undefined

  const post = (path: string, body: JsonObject, timeoutMs: number) =>
    askAntispam(client, { url: `${base}/${path}`, token, body, timeoutMs, maxBytes: MAX_ANTISPAM_BYTES })

  async function ping(question: AntispamQuestion): Promise<void> {
    const asked = post('ping', { id: String(clock.now()) }, timeoutMs)
    const { verdict } = await asked.finally(() => {
      pinging = undefined
    })
    if (verdict !== 'unavailable') return
    restsUntil = clock.now() + ANTISPAM_REST_MS
    log.warn({ question }, 'the antispam service did not answer, and is left alone for some seconds')
  }

  async function verdictOf(question: AntispamQuestion, body: JsonObject): Promise<AntispamVerdict> {
    let begun = performance.now()
    // Who fills all places must not be let through for that: the next ones wait.
    if (!(await places.enter(EVERYBODY, MAX_ANTISPAM_AT_ONCE, AbortSignal.timeout(timeoutMs)))) {
      return { verdict: 'unavailable' }
    }
    try {
      if (pinging) {
        await pinging
        begun = performance.now()
      }
      if (clock.now() < restsUntil) return { verdict: 'unavailable' }
      const answer = await post(question, body, Math.max(timeoutMs - (performance.now() - begun), LEAST_MS))
      if (answer.verdict === 'unavailable' && clock.now() >= restsUntil) pinging ??= ping(question)
      return answer
    } finally {
      places.leave(EVERYBODY)
    }
  }

  return {
    asks: (question) => asked.has(question),
    async ask(question, body) {
      const answer = await verdictOf(question, body)
      if (answer.verdict === 'refuse') {
        throw new ProtocolError('M_FORBIDDEN', answer.reason ?? 'This server does not allow that.')
      }
      if (answer.verdict === 'allow' || failsOpen) return
      throw new ProtocolError('M_UNKNOWN', 'This cannot be checked just now. Try again later.', { status: 503 })
    },
  }
}
