import { timingSafeEqual } from 'node:crypto'
import { ProtocolError } from '../../core/errors.ts'
import type { KeyedQueue } from '../../core/keyed-queue.ts'
import type { Medium } from '../../core/threepid.ts'
import type { Database } from '../../store/db/db.ts'
import { findSession, markValidated, type SessionRow, spendAttempt } from '../../store/identity/sessions.ts'
import type { Clock } from '../clock.ts'
import type { IdentityMetrics } from './identity-metrics.ts'
import { HOUR_MS, type SessionRules, sha256, tokenHash } from './session-rules.ts'

export interface SessionProof {
  readonly sid: string
  readonly clientSecret: string
}

/** A validated address. */
export interface ValidatedThreepid {
  readonly medium: Medium
  readonly address: string
  /** Milliseconds. */
  readonly validatedAt: number
}

/** Validates sessions by their tokens, and reads validated ones. */
export interface SessionProofs {
  /**
   * Validates a session by the token that was sent to its address. A repeated success counts as one.
   * @returns the link at which the person continues
   * @throws ProtocolError `M_NO_VALID_SESSION`, `M_SESSION_EXPIRED`, `M_TOKEN_INCORRECT`
   */
  submit(medium: Medium, proof: SessionProof, token: string): Promise<{ readonly nextLink: string | undefined }>
  /** The address of a validated session. @throws ProtocolError `M_NO_VALID_SESSION`, `M_SESSION_EXPIRED`, `M_SESSION_NOT_VALIDATED` */
  findValidated(proof: SessionProof): Promise<ValidatedThreepid>
}

/** How long an expired session is reported as expired. After that it counts as unknown. */
export const EXPIRED_KEPT_MS = 5 * 24 * HOUR_MS
const NOBODYS_SECRET = sha256('')

/** Removes what people add when they type a token. */
function tidyToken(medium: Medium, token: string): string {
  return medium === 'msisdn' ? token.replace(/[\s-]/g, '') : token.trim()
}

export interface SessionProofParts {
  readonly db: Database
  readonly clock: Clock
  readonly realm: { readonly name: string }
  /** Undefined if nothing is counted. */
  readonly metrics?: Pick<IdentityMetrics, 'session'>
}

/** @param turns runs submissions to one session one after another */
export function createSessionProofs(
  { db, clock, realm, metrics }: SessionProofParts,
  { lifetimeMs, allowedWrong, isSpent }: SessionRules,
  turns: KeyedQueue<string>,
): SessionProofs {
  /** An unknown session id and a wrong secret give the same answer, so that nobody learns which sessions exist. */
  async function open({ sid, clientSecret }: SessionProof, medium?: Medium): Promise<SessionRow> {
    const found = await findSession(db, sid)
    const row = found?.realm === realm.name ? found : undefined
    const fits = timingSafeEqual(sha256(clientSecret), row?.secret_hash ?? NOBODYS_SECRET)
    const now = clock.now()
    if (row === undefined || !fits || (medium !== undefined && row.medium !== medium)) {
      throw new ProtocolError('M_NO_VALID_SESSION', 'There is no session with this id and secret.')
    }
    if (row.expires_at + EXPIRED_KEPT_MS <= now) {
      throw new ProtocolError('M_NO_VALID_SESSION', 'There is no session with this id and secret.')
    }
    if (row.expires_at <= now) throw expired()
    return row
  }

  async function submit(medium: Medium, proof: SessionProof, token: string) {
    const before = await open(proof, medium)
    if (isSpent(before)) throw expired()
    const { sid } = proof
    const given = tokenHash(sid, tidyToken(medium, token))
    const good = await db.tx((tx) => spendAttempt(tx, sid, allowedWrong[medium]))
    if (good === undefined) throw expired()
    if (!good.some((each) => timingSafeEqual(each, given))) {
      throw new ProtocolError('M_TOKEN_INCORRECT', 'The token is not the one that was sent.')
    }
    const now = clock.now()
    const row = await db.tx((tx) => markValidated(tx, sid, now, now + lifetimeMs))
    if (before.validated_at === null) metrics?.session(medium, 'validated')
    return { nextLink: row?.next_link ?? undefined }
  }

  return {
    // Submissions run one after another, so that a client that guesses tokens uses one connection and not all of them.
    submit: (medium, proof, token) => turns.run(`submit ${proof.sid}`, () => submit(medium, proof, token)),
    async findValidated(proof) {
      const row = await open(proof)
      const { medium, address, validated_at: validatedAt } = row
      if (validatedAt !== null) return { medium, address, validatedAt }
      if (isSpent(row)) throw expired()
      throw new ProtocolError('M_SESSION_NOT_VALIDATED', 'This session has not been validated yet.')
    },
  }
}

function expired(): ProtocolError {
  return new ProtocolError('M_SESSION_EXPIRED', 'This session has expired. Begin a new one.')
}
