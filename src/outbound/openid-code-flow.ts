import * as oidc from 'openid-client'
import type { JsonObject } from '../core/json.ts'
import type { GuardedClient } from './http.ts'
import { type OpenIdProvider, type ProviderClient, ProviderError, type SignInSecrets } from './openid-provider.ts'

const TIMEOUT_SECONDS = 10
const METADATA_MS = 3_600_000
const MAX_ANSWER_BYTES = 1_048_576

/** One OpenID Connect provider (OpenID Connect Core 1.0 and Discovery 1.0), by the code flow with PKCE. Its metadata is read again every hour. */
export function openCodeFlow(
  client: ProviderClient,
  deps: { readonly client: Pick<GuardedClient, 'request'>; readonly now: () => number },
): OpenIdProvider {
  let discovered: { readonly until: number; readonly configuration: Promise<oidc.Configuration> } | undefined

  function configuration(): Promise<oidc.Configuration> {
    const now = deps.now()
    if (discovered !== undefined && discovered.until > now) return discovered.configuration
    const found = { until: now + METADATA_MS, configuration: discover(client, fetchThrough(deps.client)) }
    discovered = found
    found.configuration.catch(() => {
      if (discovered === found) discovered = undefined
    })
    return found.configuration
  }

  return {
    async authorizationUrl(secrets, wish) {
      try {
        return await beginning(async () => addressOf(client, await configuration(), secrets, wish))
      } catch (error) {
        // The published metadata may be the reason: read it again next time.
        discovered = undefined
        throw error
      }
    },

    async redeem(answer, { state, nonce, codeVerifier }) {
      const known = await beginning(configuration)
      const callback = new URL(`${client.redirectUri}?${answer}`)
      const checks = {
        expectedState: state,
        expectedNonce: nonce,
        pkceCodeVerifier: codeVerifier,
        idTokenExpected: true,
      }
      const tokens = await translated(() => oidc.authorizationCodeGrant(known, callback, checks))
      const claims = (tokens.claims() ?? {}) as JsonObject
      const subject = String(claims.sub)
      return {
        subject,
        claims,
        async allClaims() {
          if (known.serverMetadata().userinfo_endpoint === undefined) return claims
          const more = await translated(() => oidc.fetchUserInfo(known, tokens.access_token, subject))
          return { ...claims, ...more } as JsonObject
        },
      }
    },
  }
}

async function addressOf(
  client: ProviderClient,
  known: oidc.Configuration,
  { state, nonce, codeVerifier }: SignInSecrets,
  wish: 'register' | 'again' | undefined,
): Promise<URL> {
  const { prompt_values_supported: prompts } = known.serverMetadata()
  const canRegister = Array.isArray(prompts) && prompts.includes('create')
  return oidc.buildAuthorizationUrl(known, {
    redirect_uri: client.redirectUri,
    scope: client.scopes.join(' '),
    state,
    nonce,
    code_challenge: await oidc.calculatePKCECodeChallenge(codeVerifier),
    code_challenge_method: 'S256',
    ...(wish === 'register' && canRegister && { prompt: 'create' }),
    // Known to every provider; a session that is there already does not do.
    ...(wish === 'again' && { max_age: '0' }),
  })
}

async function discover(client: ProviderClient, fetch: oidc.CustomFetch): Promise<oidc.Configuration> {
  const { issuer, clientId, clientSecret } = client
  const isPlain = new URL(issuer).protocol === 'http:'
  return oidc.discovery(new URL(issuer), clientId, {}, clientAuthentication(clientSecret), {
    timeout: TIMEOUT_SECONDS,
    // The signature too: an ID token is believed for what it is, not for where it came from.
    execute: [oidc.enableNonRepudiationChecks, ...(isPlain ? [oidc.allowInsecureRequests] : [])],
    [oidc.customFetch]: fetch,
  })
}

/** `fetch` for the library, through our guarded client. It follows no redirects. */
function fetchThrough(client: Pick<GuardedClient, 'request'>): oidc.CustomFetch {
  return async (url, { method, headers, body }) => {
    const text = body === undefined || body === null ? undefined : String(body)
    const timeoutMs = TIMEOUT_SECONDS * 1000
    const answer = await client.request({ method, url, headers, body: text, timeoutMs, maxBytes: MAX_ANSWER_BYTES })
    if (!answer.ok) throw new ProviderError('unreachable', answer.kind, answer.detail)
    const isBare = answer.status === 204 || answer.status === 304
    return new Response(isBare ? null : new Uint8Array(answer.body), { status: answer.status, headers: answer.headers })
  }
}

/** How to send the secret. A provider that does not say expects it in a header (OpenID Connect Discovery 1.0, section 3). */
function clientAuthentication(secret: string | undefined): oidc.ClientAuth {
  if (secret === undefined) return oidc.None()
  const [basic, post] = [oidc.ClientSecretBasic(secret), oidc.ClientSecretPost(secret)]
  return (server, ...rest) => {
    const { token_endpoint_auth_methods_supported: methods = ['client_secret_basic'] } = server
    return (methods.includes('client_secret_basic') ? basic : post)(server, ...rest)
  }
}

async function translated<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw toProviderError(error)
  }
}

/** Runs the steps before the person is asked. Any error there means that the provider is unavailable. */
async function beginning<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    const { code, message } = toProviderError(error)
    throw new ProviderError('unreachable', code, message)
  }
}

/** Error codes that mean that the person refused, or could not sign in. */
const CANCELLED = new Set(['access_denied', 'login_required', 'interaction_required', 'consent_required'])

function toProviderError(error: unknown): ProviderError {
  if (error instanceof ProviderError) return error
  if (error instanceof oidc.AuthorizationResponseError) {
    const kind = CANCELLED.has(error.error) ? 'cancelled' : 'refused'
    return new ProviderError(kind, error.error, 'the provider sent an error')
  }
  if (error instanceof oidc.ResponseBodyError) {
    const kind = error.status >= 500 ? 'unreachable' : 'refused'
    return new ProviderError(kind, error.error, `the provider answered ${error.status}`)
  }
  if (error instanceof oidc.ClientError) {
    if (error.cause instanceof ProviderError) return error.cause
    const answer = error.cause instanceof Response ? error.cause : undefined
    const isAbsent = error.code === undefined || UNREACHABLE.has(error.code) || (answer?.status ?? 0) >= 500
    return new ProviderError(isAbsent ? 'unreachable' : 'refused', error.code ?? 'none', error.message)
  }
  const { code, name, message } = error as NodeJS.ErrnoException
  return new ProviderError('unreachable', code ?? name, message)
}

const UNREACHABLE = new Set(['OAUTH_TIMEOUT', 'OAUTH_ABORT', 'OAUTH_RESPONSE_IS_NOT_JSON', 'OAUTH_PARSE_ERROR'])
