import type { JsonObject } from '../core/json.ts'

/** This server's registration with a provider. */
export interface ProviderClient {
  readonly issuer: string
  readonly clientId: string
  /** Undefined for a client without a secret, which only PKCE protects. */
  readonly clientSecret: string | undefined
  readonly scopes: readonly string[]
  /** The address to which the provider redirects browsers. */
  readonly redirectUri: string
}

/** The secrets of one sign-in, known only to this server and one browser. Each is sent or proven to the provider once. */
export interface SignInSecrets {
  readonly state: string
  readonly nonce: string
  readonly codeVerifier: string
}

/** A person's identity, as a provider confirms it. */
export interface Identity {
  readonly subject: string
  /** The claims of the ID token. */
  readonly claims: JsonObject
  /** Requests the provider's userinfo endpoint and adds its claims. */
  allClaims(): Promise<JsonObject>
}

/**
 * Why a sign-in at a provider failed: the person refused, the provider gave no usable answer, or the answer is not valid.
 * `code` is for the log: it never contains text of the answer.
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
  /** The address for a browser to sign in. `wish`: create an account there, or authenticate again. */
  authorizationUrl(secrets: SignInSecrets, wish?: 'register' | 'again'): Promise<URL>
  /** Exchanges the parameters of the redirect for an identity. Checks issuer, audience, times, nonce and signature of the ID token. */
  redeem(answer: URLSearchParams, secrets: SignInSecrets): Promise<Identity>
}
