import type { Config } from '../../config/schema.ts'
import { type Errcode, ProtocolError } from '../../core/errors.ts'
import { compileGlobs } from '../../core/glob.ts'
import { isEmailAddress, type Medium, normaliseAddress } from '../../core/threepid.ts'
import { findThreepidOwner } from '../../store/accounts/user-threepids.ts'
import type { Database } from '../../store/db/db.ts'
import { isRegistrationOpen } from '../accounts/registration-policy.ts'
import { readPhoneNumber } from '../identity/phone-numbers.ts'
import type { SendLimits } from '../identity/send-limits.ts'
import type { TokenRequest } from '../identity/sessions.ts'
import type { ContactSessions } from './contact-sessions.ts'
import type { DelegatedSessions, NamedServer } from './delegated-sessions.ts'
import type { AddressWish, BegunSession } from './identity-server.ts'
import type { IdentityServers } from './identity-servers.ts'
import type { Purpose } from './proof.ts'

/** Begins the validation of an address by this homeserver (client-server API, the operations named `requestToken`). */
export interface TokenRequests {
  /**
   * Sends a token, or has the identity server send it that the client names, if this homeserver does not validate such addresses. For a
   * new password the address must belong to an account; for everything else it must not. If the configuration hides whether it does, no
   * message is sent in the wrong case, and the answer looks the same.
   *
   * @throws ProtocolError `M_SERVER_NOT_TRUSTED` and errors of an identity server; `M_INVALID_PARAM` for an invalid address, 403
   *   `M_THREEPID_DENIED` for one that is not served, `M_THREEPID_MEDIUM_NOT_SUPPORTED` for such a one to add, `M_THREEPID_IN_USE`, `M_THREEPID_NOT_FOUND`, `M_EMAIL_SEND_ERROR`, `M_SEND_ERROR`,
   *   `M_LIMIT_EXCEEDED`
   */
  request(
    purpose: Purpose,
    wish: AddressWish,
    request: TokenRequest & { readonly isForwarded: boolean },
    named?: NamedByClient,
  ): Promise<BegunSession>
}

/** `id_server` and `id_access_token`. They are ignored if this homeserver validates addresses itself. */
export interface NamedByClient {
  readonly idServer: string | undefined
  readonly accessToken: string | undefined
}

/** Errors of the identity service that have other names in the client-server API. */
const SHOWN_AS: Partial<Record<Errcode, Errcode>> = {
  M_INVALID_EMAIL: 'M_INVALID_PARAM',
  M_INVALID_ADDRESS: 'M_INVALID_PARAM',
  M_DESTINATION_REJECTED: 'M_THREEPID_DENIED',
}

const NOBODY: NamedByClient = { idServer: undefined, accessToken: undefined }

interface WishedAddress {
  readonly medium: Medium
  readonly address: string
  readonly region?: string
}

export function createTokenRequests(deps: {
  readonly config: Pick<
    Config,
    'contact' | 'identity' | 'registration' | 'listen' | 'https' | 'trusted_proxies' | 'public_base_url'
  >
  readonly db: Database
  readonly sessions: ContactSessions
  readonly sendLimits: SendLimits
  readonly delegated: Pick<DelegatedSessions, 'begin'>
  readonly identityServers: Pick<IdentityServers, 'normalise'>
}): TokenRequests {
  const { config, db, sessions, sendLimits, delegated, identityServers } = deps
  const { allowed_emails, allowed_numbers } = config.contact
  const isAllowed = {
    email: allowed_emails.length === 0 ? () => true : compileGlobs(allowed_emails),
    msisdn: allowed_numbers.length === 0 ? () => true : compileGlobs(allowed_numbers),
  }

  async function read(wish: AddressWish): Promise<WishedAddress> {
    if (wish.medium === 'msisdn') {
      const { msisdn, region } = await readPhoneNumber(wish.country, wish.number)
      return { medium: 'msisdn', address: msisdn, region }
    }
    const address = normaliseAddress('email', wish.email)
    if (isEmailAddress(wish.email) && isEmailAddress(address)) return { medium: 'email', address }
    throw new ProtocolError('M_INVALID_PARAM', 'This is not an email address.')
  }

  /** The identity server that validates an address; undefined for this homeserver itself. */
  function validatorOf(
    purpose: Purpose,
    medium: Medium,
    { idServer, accessToken }: NamedByClient,
  ): NamedServer | undefined {
    const isMute = medium === 'msisdn' && config.identity.sms.gateway === 'none'
    if (!isMute && !config.contact.validated_elsewhere.includes(medium)) return undefined
    if (idServer === undefined && isMute) {
      const errcode = purpose === 'add' ? 'M_THREEPID_MEDIUM_NOT_SUPPORTED' : 'M_THREEPID_DENIED'
      throw new ProtocolError(errcode, 'This server sends no text messages: name an identity server.')
    }
    if (idServer === undefined || accessToken === undefined) {
      const key = idServer === undefined ? 'id_server' : 'id_access_token'
      throw new ProtocolError('M_MISSING_PARAM', `Key '${key}' is missing: identity servers validate addresses here.`)
    }
    return { server: identityServers.normalise(idServer), accessToken }
  }

  function requireServed({ medium, address }: WishedAddress): void {
    if (!isAllowed[medium](address)) {
      throw new ProtocolError('M_THREEPID_DENIED', 'Addresses like this one are not allowed on this server.')
    }
  }

  /**
   * A refusal reveals whether an address has an account here. So it counts like a message, and nobody can try addresses without limit.
   */
  async function refuse(purpose: Purpose, wished: WishedAddress, sender: string): Promise<never> {
    await sendLimits.take({ ...wished, sender })
    throw purpose !== 'password'
      ? new ProtocolError('M_THREEPID_IN_USE', 'This address belongs to an account already.')
      : new ProtocolError('M_THREEPID_NOT_FOUND', 'No account has this address.')
  }

  async function fits(purpose: Purpose, { medium, address }: WishedAddress): Promise<boolean> {
    const isOwned = (await findThreepidOwner(db, medium, address)) !== undefined
    return isOwned === (purpose === 'password')
  }

  /** Whether the answer must not reveal which addresses have accounts. */
  function hidesKnown(isForwarded: boolean): boolean {
    const { hide_known: hides } = config.contact
    return hides === 'auto' ? !isRegistrationOpen(config, isForwarded) : hides
  }

  async function begin(purpose: Purpose, wish: AddressWish, request: TokenRequest): Promise<BegunSession> {
    if (wish.medium === 'email') return { sid: await sessions.of(purpose).requestEmail(wish.email, request) }
    const { sid, phone } = await sessions.of(purpose).requestMsisdn(wish.country, wish.number, request)
    const submit_url = sessions.submitUrl(purpose, 'msisdn', request.dialect)
    return { sid, submit_url, msisdn: phone.msisdn, intl_fmt: phone.international }
  }

  return {
    async request(purpose, wish, request, named = NOBODY) {
      const validator = validatorOf(purpose, wish.medium, named)
      try {
        const wished = await read(wish)
        requireServed(wished)
        const [isFit, isHidden] = [await fits(purpose, wished), hidesKnown(request.isForwarded)]
        if (!isFit && !isHidden) return await refuse(purpose, wished, request.sender)
        if (!isFit) return await begin(purpose, wish, { ...request, delivery: 'none' })
        if (validator === undefined) {
          return await begin(purpose, wish, isHidden ? { ...request, delivery: 'unawaited' } : request)
        }
        await sendLimits.take({ ...wished, sender: request.sender })
        const { medium, address } = wished
        return await delegated.begin({ ...validator, purpose, medium, address }, wish, request)
      } catch (error) {
        const errcode = error instanceof ProtocolError ? SHOWN_AS[error.errcode] : undefined
        throw errcode === undefined ? error : new ProtocolError(errcode, (error as ProtocolError).message)
      }
    },
  }
}
