import type { JsonObject } from '../core/json.ts'

/** How this server is known to a provider. */
export interface ProviderClient {
  readonly issuer: string
  readonly clientId: string
  /** Undefined for a client without one, which PKCE alone protects. */
  readonly clientSecret: string | undefined
  readonly scopes: readonly string[]
  /** Where the provider sends browsers back to. */
  readonly redirectUri: string
}

/** What only this server and one browser know of a sign-in; each is sent or proven to the provider once. */
export interface SignInSecrets {
  readonly state: string
  readonly nonce: string
  readonly codeVerifier: string
}

/** Whom a provider vouches for. */
export interface Identity {
  readonly subject: string
  /** Those of the ID token. */
  readonly claims: JsonObject
  /** Those of the provider's userinfo endpoint too, which is asked now. */
  allClaims(): Promise<JsonObject>
}

/**
 * Why a provider did not vouch for anybody: the person would not, nothing usable was answered, or what it answered does not hold.
 * `code` is for the log: it never holds what was answered.
 */
export class ProviderError extends Error {
  readonly kind: 'cancelled' | 'unreachable' | 'refused'
  readonly code: string

  constructor(kind: ProviderError['kind'], code: string, message: string) {
    super(message)
    this.name = 'ProviderError'
    this.kind = kind
    this.code = code
  }
}

export interface OpenIdProvider {
  /** Where a browser goes to sign in. `wish`: make an account there, or prove again who sits there. */
  authorizationUrl(secrets: SignInSecrets, wish?: 'register' | 'again'): Promise<URL>
  /** Trades what the browser brought back for an identity. Checks issuer, audience, times, nonce and signature of the ID token. */
  redeem(answer: URLSearchParams, secrets: SignInSecrets): Promise<Identity>
}
