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

/** Where sessions are begun. A validation in one realm does not count in another. */
export interface Realm {
  readonly name: string
  readonly template: ValidationMailName
  /** The URL to which a mail's link submits the token; its parameters follow. */
  submitUrl(dialect: Dialect): string
}

/** The request for a token, without the address. */
export interface TokenRequest {
  readonly clientSecret: string
  /** A message is sent only if this is higher than in all earlier requests that sent one. */
  readonly sendAttempt: number
  readonly nextLink: string | undefined
  /** The dialect of the link in a mail. */
  readonly dialect: Dialect
  /** The requester: a user id, or a network address if there is no user. */
  readonly sender: string
  readonly look: Look
  /**
   * Whether the message is sent after the answer, or not at all, so that the answer reveals nothing. By default the answer waits for it.
   */
  readonly delivery?: 'unawaited' | 'none'
}

/**
 * Validation of addresses, for the identity service and for the homeserver (identity service API, "Establishing associations";
 * client-server API, `requestToken`). All times count from the session's own clock.
 */
export interface ValidationSessions extends SessionProofs {
  /**
   * Sends a mail with a token, unless this attempt had its mail already. Returns the session's id.
   * @throws ProtocolError `M_INVALID_EMAIL`, `M_INVALID_PARAM`, `M_EMAIL_SEND_ERROR`, `M_LIMIT_EXCEEDED`
   */
  requestEmail(email: string, request: TokenRequest): Promise<string>
  /**
   * Does the same by text message, to a number as dialled from `country`.
   * @throws ProtocolError `M_INVALID_ADDRESS`, `M_INVALID_PARAM`, `M_SEND_ERROR`, `M_DESTINATION_REJECTED`, `M_LIMIT_EXCEEDED`
   */
  requestMsisdn(country: string, number: string, request: TokenRequest): Promise<{ sid: string; phone: PhoneNumber }>
}

/** A later mail may arrive first, so this many of the newest tokens are valid. */
const TOKENS_KEPT = 3
const SID_BYTES = 18
const MAIL_TOKEN_BYTES = 24
/** Codes of six digits. Random numbers above the last whole million are not used, so that all codes are equally likely. */
const CODES = 1_000_000
const CODES_BELOW = Math.floor(2 ** 32 / CODES) * CODES

/** The receiver of a message. */
interface Target {
  readonly medium: Medium
  readonly address: string
  /** The address as the client wrote it: attempts are counted by it and the client secret. */
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

/** Gives the same answer in the same time, whether a message is sent or not. */
function quietly(target: Target, { delivery }: TokenRequest): Target {
  if (delivery === undefined) return target
  const send = async (sid: string, token: string): Promise<void> => {
    if (delivery === 'none') return
    // The sender has logged the error.
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
  /** Undefined if nothing is counted. */
  readonly metrics?: Pick<IdentityMetrics, 'session'>
}): ValidationSessions {
  const { config, db, clock, random, messenger, sendLimits, realm, metrics } = deps
  const options = config.identity.sessions
  const rules = sessionRules(options)
  const hours = String(options.lifetime_hours)
  // Requests of one scope run one after another, as submissions to one session do: a repeated one gets the result of the first.
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

  /** A new token would be useless, and a new session would give guessers new attempts. */
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

  /** The token is valid before its message is sent, because it may be submitted before the mail server answers. */
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
    // The token comes last: if a mail program cuts the link off, the token is missing, and the page can say so.
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
