import type { Config } from '../../config/schema.ts'
import { ProtocolError } from '../../core/errors.ts'
import { createKeyedQueue } from '../../core/keyed-queue.ts'
import type { Dialect } from '../../core/paths.ts'
import { isEmailAddress, type Medium, normaliseAddress } from '../../core/threepid.ts'
import type { Database } from '../../store/db/db.ts'
import { addToken, dropToken, findScope, insertSession, recordSent } from '../../store/identity/sessions.ts'
import type { Clock, Random } from '../clock.ts'
import type { IdentityMetrics } from './identity-metrics.ts'
import type { ValidationMailName } from './message-templates.ts'
import type { Look, Messenger } from './messenger.ts'
import { readNextLink, withSessionId } from './next-link.ts'
import { type PhoneNumber, readPhoneNumber } from './phone-numbers.ts'
import type { SendLimits } from './send-limits.ts'
import { createSessionProofs, type SessionProofs } from './session-proofs.ts'
import { sessionRules, sha256, tokenHash } from './session-rules.ts'

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

/**
 * Validation of addresses, for the identity service and for the homeserver (identity service API, "Establishing associations";
 * client-server API, `requestToken`). All times count from the session's own clock.
 */
export interface ValidationSessions extends SessionProofs {
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
}

/** A mail may be overtaken by the next: so many of the newest tokens are good. */
const TOKENS_KEPT = 3
const SID_BYTES = 18
const MAIL_TOKEN_BYTES = 24
/** Codes of six digits; the random numbers above the last whole million are not used, so that all codes are as likely. */
const CODES = 1_000_000
const CODES_BELOW = Math.floor(2 ** 32 / CODES) * CODES

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

function makeCode(random: Random): string {
  let number = random.bytes(4).readUInt32BE()
  while (number >= CODES_BELOW) number = random.bytes(4).readUInt32BE()
  return String(number % CODES).padStart(6, '0')
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
  const rules = sessionRules(options)
  const hours = String(options.lifetime_hours)
  // Requests of one scope wait for each other, as submissions to one session do: a repeated one is answered by what became of the first.
  const turns = createKeyedQueue<string>()

  async function request(target: Target, by: TokenRequest): Promise<string> {
    const nextLink = by.nextLink === undefined ? undefined : readNextLink(by.nextLink, options.next_link_hosts)
    const scopeHash = sha256(`${realm.name}\0${target.medium}\0${target.named}\0${by.clientSecret}`)
    return turns.run(scopeHash.toString('base64'), async () => {
      const known = await findScope(db, scopeHash, clock.now())
      if (known !== undefined && by.sendAttempt <= known.send_attempt) return known.sid
      if (known !== undefined && rules.isSpent(known)) throw tooManyWrongTokens(known.expires_at)
      await sendLimits.take({ ...target, sender: by.sender })
      const sid = known?.sid ?? (await begin(target, scopeHash, by.clientSecret))
      await deliver(quietly(target, by), sid, by.sendAttempt, nextLink && withSessionId(nextLink, sid))
      return sid
    })
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
    const session = {
      sid,
      realm: realm.name,
      scopeHash,
      secretHash,
      medium,
      address,
      now,
      expiresAt: now + rules.lifetimeMs,
    }
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

  return {
    ...createSessionProofs(deps, rules, turns),
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
          makeToken: () => makeCode(random),
          send: (_sid, token) => messenger.sms(phone, { token, hours }, by.look),
        },
        by,
      )
      return { sid, phone }
    },
  }
}
