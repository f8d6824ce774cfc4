import { hash, timingSafeEqual } from 'node:crypto'
import type { Config } from '../../config/schema.ts'
import { ProtocolError } from '../../core/errors.ts'
import type { Dialect } from '../../core/paths.ts'
import { isEmailAddress, type Medium, normaliseAddress } from '../../core/threepid.ts'
import type { Database } from '../../store/db/db.ts'
import {
  addToken,
  dropToken,
  findScope,
  findSession,
  insertSession,
  markValidated,
  recordSent,
  type SessionRow,
  spendAttempt,
} from '../../store/identity/sessions.ts'
import type { Clock, Random } from '../clock.ts'
import type { IdentityMetrics } from './identity-metrics.ts'
import type { ValidationMailName } from './message-templates.ts'
import type { Look, Messenger } from './messenger.ts'
import { readNextLink, withSessionId } from './next-link.ts'
import { type PhoneNumber, readPhoneNumber } from './phone-numbers.ts'
import type { SendLimits } from './send-limits.ts'

/** Where sessions are begun. What one realm has validated is nothing in another. */
export interface Realm {
  readonly name: string
  readonly template: ValidationMailName
  /** Where the token of a mail is submitted by link; its parameters follow. */
  submitUrl(dialect: Dialect): string
}

/** What a request for a token says besides the address. */
export interface TokenRequest {
  readonly clientSecret: string
  /** A message goes out only if this is above the highest that had one. */
  readonly sendAttempt: number
  readonly nextLink: string | undefined
  /** Which of our paths the link in a mail has. */
  readonly dialect: Dialect
  /** Who asks: a user id, or the network address of somebody without one. */
  readonly sender: string
  readonly look: Look
  /**
   * Whether the message is sent while nobody waits for it, or not at all: the answer tells nothing of it. By default it is waited for.
   */
  readonly delivery?: 'unawaited' | 'none'
}

export interface SessionProof {
  readonly sid: string
  readonly clientSecret: string
}

/** An address that was shown to be somebody's. */
export interface ValidatedThreepid {
  readonly medium: Medium
  readonly address: string
  /** Milliseconds. */
  readonly validatedAt: number
}

/**
 * Validation of addresses, for the identity service and for the homeserver (identity service API, "Establishing associations";
 * client-server API, `requestToken`). All times count from the session's own clock.
 */
export interface ValidationSessions {
  /**
   * Sends a mail with a token, unless this attempt had its mail already. Gives the session's id.
   * @throws ProtocolError `M_INVALID_EMAIL`, `M_INVALID_PARAM`, `M_EMAIL_SEND_ERROR`, `M_LIMIT_EXCEEDED`
   */
  requestEmail(email: string, request: TokenRequest): Promise<string>
  /**
   * The same by text message to a number as dialled from `country`.
   * @throws ProtocolError `M_INVALID_ADDRESS`, `M_INVALID_PARAM`, `M_SEND_ERROR`, `M_DESTINATION_REJECTED`, `M_LIMIT_EXCEEDED`
   */
  requestMsisdn(country: string, number: string, request: TokenRequest): Promise<{ sid: string; phone: PhoneNumber }>
  /**
   * Validates a session by a token that reached its address. A repeated success is one.
   * @returns where the person wants to go next
   * @throws ProtocolError `M_NO_VALID_SESSION`, `M_SESSION_EXPIRED`, `M_TOKEN_INCORRECT`
   */
  submit(medium: Medium, proof: SessionProof, token: string): Promise<{ readonly nextLink: string | undefined }>
  /** What a session has shown. @throws ProtocolError `M_NO_VALID_SESSION`, `M_SESSION_EXPIRED`, `M_SESSION_NOT_VALIDATED` */
  findValidated(proof: SessionProof): Promise<ValidatedThreepid>
}

const HOUR_MS = 3_600_000
/** An expired session is told as such for so long; after it, nobody knows of it. */
export const EXPIRED_KEPT_MS = 5 * 24 * HOUR_MS
/** A mail may be overtaken by the next: so many of the newest tokens are good. */
const TOKENS_KEPT = 3
const SID_BYTES = 18
const MAIL_TOKEN_BYTES = 24
/** Codes of six digits; the random numbers above the last whole million are not used, so that all codes are as likely. */
const CODES = 1_000_000
const CODES_BELOW = Math.floor(2 ** 32 / CODES) * CODES

const sha256 = (text: string): Buffer => hash('sha256', text, 'buffer')
const NOBODYS_SECRET = sha256('')
const tokenHash = (sid: string, token: string): Buffer => sha256(`${sid}\0${token}`)

/** As people type what they were sent. */
function tidyToken(medium: Medium, token: string): string {
  return medium === 'msisdn' ? token.replace(/[\s-]/g, '') : token.trim()
}

/** What a message is sent about. */
interface Target {
  readonly medium: Medium
  readonly address: string
  /** The address as the client named it: attempts are counted for this and the client secret. */
  readonly named: string
  readonly region?: string
  makeToken(): string
  send(sid: string, token: string): Promise<void>
}

export function createValidationSessions(deps: {
  readonly config: Pick<Config, 'identity'>
  readonly db: Database
  readonly clock: Clock
  readonly random: Random
  readonly messenger: Messenger
  readonly sendLimits: SendLimits
  readonly realm: Realm
  /** Undefined where nobody counts. */
  readonly metrics?: Pick<IdentityMetrics, 'session'>
}): ValidationSessions {
  const { config, db, clock, random, messenger, sendLimits, realm, metrics } = deps
  const options = config.identity.sessions
  const lifetimeMs = options.lifetime_hours * HOUR_MS
  const allowedWrong = { email: options.max_wrong_mail_tokens, msisdn: options.max_wrong_sms_tokens }
  const hours = String(options.lifetime_hours)
  // Requests of one scope wait for each other, as submissions to one session do: a repeated one is answered by what became of the first.
  const underWay = new Map<string, Promise<unknown>>()

  function makeCode(): string {
    let number = random.bytes(4).readUInt32BE()
    while (number >= CODES_BELOW) number = random.bytes(4).readUInt32BE()
    return String(number % CODES).padStart(6, '0')
  }

  async function inTurn<T>(key: string, work: () => Promise<T>): Promise<T> {
    const turn = (underWay.get(key) ?? Promise.resolve()).then(work, work)
    underWay.set(key, turn)
    try {
      return await turn
    } finally {
      if (underWay.get(key) === turn) underWay.delete(key)
    }
  }

  const isSpent = (row: SessionRow): boolean => row.wrong_tokens >= allowedWrong[row.medium]

  async function request(target: Target, by: TokenRequest): Promise<string> {
    const nextLink = by.nextLink === undefined ? undefined : readNextLink(by.nextLink, options.next_link_hosts)
    const scopeHash = sha256(`${realm.name}\0${target.medium}\0${target.named}\0${by.clientSecret}`)
    return inTurn(scopeHash.toString('base64'), async () => {
      const known = await findScope(db, scopeHash, clock.now())
      if (known !== undefined && by.sendAttempt <= known.send_attempt) return known.sid
      if (known !== undefined && isSpent(known)) throw tooManyWrongTokens(known.expires_at)
      await sendLimits.take({ ...target, sender: by.sender })
      const sid = known?.sid ?? (await begin(target, scopeHash, by.clientSecret))
      await deliver(quietly(target, by), sid, by.sendAttempt, nextLink && withSessionId(nextLink, sid))
      return sid
    })
  }

  /** The same whether a message leaves or not, in time as well. */
  function quietly(target: Target, { delivery }: TokenRequest): Target {
    if (delivery === undefined) return target
    const send = async (sid: string, token: string): Promise<void> => {
      if (delivery === 'none') return
      // What went wrong was written to the log by who sends.
      target.send(sid, token).catch(() => {})
    }
    return { ...target, send }
  }

  /** A token for it would be of no use, and a session that begins anew would give guessers new attempts. */
  function tooManyWrongTokens(until: number): ProtocolError {
    return new ProtocolError('M_LIMIT_EXCEEDED', 'Too many wrong tokens. Begin anew with another client_secret.', {
      extra: { retry_after_ms: Math.max(1, until - clock.now()) },
    })
  }

  async function begin({ medium, address }: Target, scopeHash: Buffer, clientSecret: string): Promise<string> {
    const now = clock.now()
    const sid = random.bytes(SID_BYTES).toString('base64url')
    const secretHash = sha256(clientSecret)
    const session = { sid, realm: realm.name, scopeHash, secretHash, medium, address, now, expiresAt: now + lifetimeMs }
    const kept = await db.tx((tx) => insertSession(tx, session))
    metrics?.session(medium, 'requested')
    return kept
  }

  /** The token is good before its message leaves, since it may be back before the mail server's answer. */
  async function deliver(target: Target, sid: string, attempt: number, nextLink: string | undefined): Promise<void> {
    const token = target.makeToken()
    const hashed = tokenHash(sid, token)
    await db.tx((tx) => addToken(tx, sid, hashed, TOKENS_KEPT))
    try {
      await target.send(sid, token)
    } catch (error) {
      await db.tx((tx) => dropToken(tx, sid, hashed))
      throw error
    }
    await db.tx((tx) => recordSent(tx, sid, attempt, nextLink))
  }

  function linkOf({ dialect, clientSecret }: TokenRequest, sid: string, token: string): string {
    // The token last: of a link that was cut off in a mail, that is what is missing, and the page can say so.
    const query = new URLSearchParams({ sid, client_secret: clientSecret, token })
    return `${realm.submitUrl(dialect)}?${query}`
  }

  /** Session id and secret fit, or the answer is the same whichever does not: nobody learns which sessions there are. */
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

  function expired(): ProtocolError {
    return new ProtocolError('M_SESSION_EXPIRED', 'This session has expired. Begin a new one.')
  }

  return {
    async requestEmail(email, by) {
      if (!isEmailAddress(email)) throw new ProtocolError('M_INVALID_EMAIL', 'This is not an email address.')
      const address = normaliseAddress('email', email)
      if (!isEmailAddress(address)) throw new ProtocolError('M_INVALID_EMAIL', 'This is not an email address.')
      return request(
        {
          medium: 'email',
          address,
          named: address,
          makeToken: () => random.bytes(MAIL_TOKEN_BYTES).toString('base64url'),
          send: (sid, token) =>
            messenger.mail(realm.template, address, { token, link: linkOf(by, sid, token), hours }, by.look),
        },
        by,
      )
    },
    async requestMsisdn(country, number, by) {
      const phone = await readPhoneNumber(country, number)
      messenger.requireServed(phone)
      const sid = await request(
        {
          medium: 'msisdn',
          address: phone.msisdn,
          named: `${country.toUpperCase()}\0${number}`,
          region: phone.region,
          makeToken: makeCode,
          send: (_sid, token) => messenger.sms(phone, { token, hours }, by.look),
        },
        by,
      )
      return { sid, phone }
    },
    // In turn, so that whoever guesses without end keeps one connection busy, and not all of them.
    submit: (medium, proof, token) => inTurn(`submit ${proof.sid}`, () => submit(medium, proof, token)),
    async findValidated(proof) {
      const row = await open(proof)
      const { medium, address, validated_at: validatedAt } = row
      if (validatedAt !== null) return { medium, address, validatedAt }
      if (isSpent(row)) throw expired()
      throw new ProtocolError('M_SESSION_NOT_VALIDATED', 'This session has not been validated yet.')
    },
  }
}
