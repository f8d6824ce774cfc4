import type { Logger } from 'pino'
import type { ANTISPAM_QUESTIONS } from '../../config/moderation.ts'
import type { Config } from '../../config/schema.ts'
import { ProtocolError } from '../../core/errors.ts'
import type { JsonObject } from '../../core/json.ts'
import type { GuardedClient } from '../../outbound/http.ts'
import { askAntispam } from '../../outbound/verdicts/antispam.ts'
import type { Clock } from '../clock.ts'
import { ANTISPAM_REST_MS, MAX_ANTISPAM_AT_ONCE, MAX_ANTISPAM_BYTES } from '../limits/moderation.ts'

export type AntispamQuestion = (typeof ANTISPAM_QUESTIONS)[number]

/** The operator's service that may refuse what people do. */
export interface Antispam {
  /** Whether it is asked this. */
  asks(question: AntispamQuestion): boolean
  /**
   * Resolves if it is allowed, or not answered and answers are optional. A service that did not answer is left alone for a few seconds, so
   * that nobody else waits for it.
   *
   * @throws ProtocolError `M_FORBIDDEN` with the service's words; 503 `M_UNKNOWN` if there is no answer and one is needed
   */
  ask(question: AntispamQuestion, body: JsonObject): Promise<void>
}

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
  let underWay = 0
  let restsUntil = 0

  async function verdictOf(question: AntispamQuestion, body: JsonObject) {
    if (underWay >= MAX_ANTISPAM_AT_ONCE || clock.now() < restsUntil) return { verdict: 'unavailable' } as const
    underWay++
    try {
      const at = `${url!.replace(/\/$/, '')}/${question}`
      const answer = await askAntispam(client, { url: at, token, body, timeoutMs, maxBytes: MAX_ANTISPAM_BYTES })
      if (answer.verdict === 'unavailable') {
        restsUntil = clock.now() + ANTISPAM_REST_MS
        log.warn({ question }, 'the antispam service did not answer, and is left alone for some seconds')
      }
      return answer
    } finally {
      underWay--
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
