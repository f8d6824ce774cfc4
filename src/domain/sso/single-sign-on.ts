import type { Config } from '../../config/schema.ts'
import type { UserId } from '../../core/ids.ts'
import type { JsonObject } from '../../core/json.ts'
import { isReturnAddress, isUnderOneOf, withLoginToken } from '../../core/return-address.ts'
import type { GuardedClient } from '../../outbound/http.ts'
import { type Identity, ProviderError } from '../../outbound/openid-provider.ts'
import { type ExternalAccountRow, findProvidersOf } from '../../store/accounts/external-ids.ts'
import type { InteractiveAuth } from '../accounts/interactive-auth.ts'
import type { LoginTokens } from '../accounts/login-tokens.ts'
import type { Registration } from '../accounts/registration.ts'
import type { Base } from '../base.ts'
import { MAX_SSO_SUBJECT_CHARS } from '../limits/sso.ts'
import { SIGNED_IN_PATH } from '../oauth/addresses.ts'
import { publicBaseUrl } from '../public-address.ts'
import { createExternalAccounts } from './external-accounts.ts'
import { type Purpose, type SignInAttempt, SignInFailure } from './failure.ts'
import { firstSignIn } from './first-sign-in.ts'
import { createFlows, type Flow } from './flows.ts'
import { openProviders, type Provider } from './providers.ts'

export const SSO_STAGE = 'm.login.sso'

/** The result of a sign-in. */
export type Arrival = SignedIn | Unnamed | { readonly kind: 'proven' }

export interface SignedIn {
  readonly kind: 'signed-in'
  readonly userId: UserId
  /** The client's URL, with a login token. */
  readonly returnTo: string
  readonly location: string
  /** Whether the browser may go there without asking the person. */
  readonly isTrusted: boolean
}

/** A new person, who has to choose a user name. */
export interface Unnamed {
  readonly kind: 'unnamed'
  readonly flow: string
}

/** What the page for choosing a user name needs. */
export interface NameChoice {
  readonly providerName: string
  readonly suggestion: string
  readonly displayName: string | undefined
}

export interface Demand {
  readonly userId: UserId
  /** The operation to confirm: `POST C/delete_devices` */
  readonly operation: string
  readonly providers: readonly Provider[]
}

/** Sign-in through other services by OpenID Connect (client-server API, "SSO client login/authentication"). */
export interface SingleSignOn {
  readonly providers: ReadonlyMap<string, Provider>
  /**
   * Begins a sign-in: the URL for the browser, and the secret for its cookie. `cookie` is the browser's current one.
   * @throws SignInFailure
   */
  begin(
    attempt: SignInAttempt,
    cookie: string | undefined,
    wantsAccount?: boolean,
  ): Promise<{ readonly location: string; readonly browser: string }>
  /** Handles a provider's answer, which a browser brought back. @throws SignInFailure */
  arrive(answer: URLSearchParams, browser: string | undefined): Promise<Arrival>
  /** @throws SignInFailure `ended` */
  nameChoice(flow: string, browser: string | undefined): Promise<NameChoice>
  /**
   * @throws SignInFailure `ended`; ProtocolError `M_INVALID_USERNAME`, `M_USER_IN_USE`, `M_EXCLUSIVE`: the person may try another name
   */
  chooseName(flow: string, browser: string | undefined, username: string): Promise<SignedIn>
  /**
   * What a session of user-interactive authentication asks a person to prove, and the providers that can prove it.
   * @throws SignInFailure `ended` if it asks for no such proof
   */
  demandOf(session: string): Promise<Demand>
}

type Login = Extract<Purpose, { readonly kind: 'login' }>

/** A provider's clock may differ by this much. */
const CLOCK_TOLERANCE_MS = 60_000

export interface SingleSignOnDeps {
  readonly base: Pick<Base, 'db' | 'clock' | 'random' | 'log'> & {
    readonly config: Pick<Config, 'server_name' | 'sso' | 'public_base_url' | 'listen' | 'registration' | 'well_known'>
    readonly outbound: { readonly client: Pick<GuardedClient, 'request'> }
  }
  readonly accounts: {
    readonly loginTokens: LoginTokens
    readonly registration: Pick<Registration, 'checkNew' | 'settle'>
    readonly interactiveAuth: Pick<InteractiveAuth, 'complete' | 'look'>
  }
}

export function createSingleSignOn(deps: SingleSignOnDeps): SingleSignOn {
  const { config, db, clock, random, log, outbound } = deps.base
  const { loginTokens, registration, interactiveAuth } = deps.accounts
  const providers = openProviders({ config, clock, client: outbound.client })
  const flows = createFlows({ db, clock, random })
  const accounts = createExternalAccounts({ db, clock, registration, config })

  /** Runs a request to a provider. The log does not contain the answer. */
  async function asking<T>(attempt: SignInAttempt, work: (provider: Provider) => Promise<T>): Promise<T> {
    const provider = providers.get(attempt.providerId)
    if (provider === undefined) throw new SignInFailure('unknown-provider')
    try {
      return await work(provider)
    } catch (error) {
      if (!(error instanceof ProviderError)) throw error
      const facts = { provider: provider.id, code: error.code, reason: error.message }
      if (error.kind !== 'cancelled') log.warn(facts, 'single sign-on failed at the provider')
      throw new SignInFailure(error.kind, attempt)
    }
  }

  async function signIn(account: ExternalAccountRow, returnTo: string, provenAt?: number): Promise<SignedIn> {
    if (account.deactivated_at !== null) throw new SignInFailure('deactivated')
    const { token } = await loginTokens.issue(account.user_nid, provenAt)
    return {
      kind: 'signed-in',
      userId: account.user_id,
      returnTo,
      location: withLoginToken(returnTo, token),
      isTrusted: isUnderOneOf(returnTo, [...config.sso.trusted_clients, publicBaseUrl(config) + SIGNED_IN_PATH]),
    }
  }

  /** The person who signs in again must be the session's user, and the provider must have asked again. */
  async function prove(flow: Flow, session: string, { subject, claims }: Identity): Promise<Arrival> {
    const [account, view] = [await accounts.find(flow.providerId, subject), await interactiveAuth.look(session)]
    if (view === undefined) throw new SignInFailure('ended')
    if (account === undefined || account.user_nid !== view.userNid) throw new SignInFailure('other-person', flow)
    if (account.deactivated_at !== null) throw new SignInFailure('deactivated')
    provenAgain(flow, claims, providers.get(flow.providerId), clock.now())
    await interactiveAuth.complete(session, SSO_STAGE, { provider: flow.providerId })
    return { kind: 'proven' }
  }

  async function login(
    flow: Flow,
    { returnTo, isAgain }: Login,
    identity: Identity,
    browser: string,
  ): Promise<Arrival> {
    const known = await accounts.find(flow.providerId, identity.subject)
    const provider = providers.get(flow.providerId)
    const { claims } = identity
    const provenAt = isAgain ? provenAgain(flow, claims, provider, clock.now()) : authTimeOf(claims, clock.now())
    if (known !== undefined) return signIn(known, returnTo, provenAt)
    const found = await asking(flow, (provider) => firstSignIn(provider, identity, accounts))
    if ('account' in found) return signIn(found.account, returnTo, provenAt)
    return { kind: 'unnamed', flow: await flows.park(flow, browser, found.person) }
  }

  return {
    providers,

    async begin(attempt, cookie, wantsAccount) {
      const { purpose } = attempt
      if (purpose.kind === 'login' && !isReturnAddress(purpose.returnTo)) throw new SignInFailure('bad-address')
      const browser = flows.browserSecret(cookie)
      const isAgain = purpose.kind === 'proof' || purpose.isAgain
      const wish = isAgain ? 'again' : wantsAccount ? 'register' : undefined
      const location = await asking(attempt, async ({ service }) => {
        const flow = await flows.begin(attempt, browser)
        return service.authorizationUrl(flows.secretsOf(flow, browser), wish)
      })
      return { location: location.href, browser }
    },

    async arrive(answer, browser) {
      const state = answer.get('state') ?? ''
      const flow = await flows.answer(state, browser)
      if (flow === undefined || browser === undefined) throw new SignInFailure('ended')
      const identity = await asking(flow, ({ service }) => service.redeem(answer, flows.secretsOf(state, browser)))
      if (identity.subject.length > MAX_SSO_SUBJECT_CHARS || identity.subject.includes('\0'))
        throw new SignInFailure('refused', flow)
      const { purpose } = flow
      if (purpose.kind === 'proof') return prove(flow, purpose.session, identity)
      return login(flow, purpose, identity, browser)
    },

    async nameChoice(flow, browser) {
      const parked = await flows.parked(flow, browser)
      const provider = providers.get(parked?.providerId ?? '')
      if (parked === undefined || provider === undefined) throw new SignInFailure('ended')
      const { suggestion, displayName } = parked.person
      return { providerName: provider.name, suggestion, displayName }
    },

    async chooseName(flow, browser, username) {
      const parked = await flows.parked(flow, browser)
      if (parked?.purpose.kind !== 'login' || browser === undefined) throw new SignInFailure('ended')
      const account = await accounts.create(parked.providerId, parked.person, username, async (tx) => {
        if (!(await flows.unpark(tx, flow, browser))) throw new SignInFailure('ended')
      })
      return signIn(account, parked.purpose.returnTo)
    },

    async demandOf(session) {
      const view = await interactiveAuth.look(session)
      if (view?.userNid === undefined || view.userId === undefined || !view.next.includes(SSO_STAGE)) {
        throw new SignInFailure('ended')
      }
      const { userNid, userId, operation } = view
      const ids = await findProvidersOf(db, userNid)
      return { userId, operation, providers: ids.flatMap((id) => providers.get(id) ?? []) }
    },
  }
}

/** When the person signed in at the provider, in milliseconds, if it says so (OpenID Connect Core 1.0, section 2); never later than now. */
function authTimeOf({ auth_time }: JsonObject, now: number): number | undefined {
  return typeof auth_time === 'number' && auth_time >= 0 ? Math.min(Math.floor(auth_time * 1000), now) : undefined
}

/**
 * When a person whom this server had asked again has signed in at the provider.
 * @throws SignInFailure `not-again` if that was before, or the provider does not say
 */
function provenAgain(flow: Flow, claims: JsonObject, provider: Provider | undefined, now: number): number {
  const signedInAt = authTimeOf(claims, now)
  if (signedInAt === undefined && provider?.omitsAuthTime) return now
  if (signedInAt === undefined || signedInAt < flow.startedAt - CLOCK_TOLERANCE_MS) {
    throw new SignInFailure('not-again', flow)
  }
  return signedInAt
}
