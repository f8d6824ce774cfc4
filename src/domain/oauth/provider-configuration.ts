import { generateKeyPairSync } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { type Context, errors, interactionPolicy, type Provider } from 'oidc-provider'
import type { Logger } from 'pino'
import { readScope } from '../../core/oauth/scope.ts'
import { findGrantable } from '../../store/oauth/sessions.ts'
import { AUTHORIZATION_CODE_SECONDS, DEVICE_CODE_SECONDS, GRANT_SECONDS, INTERACTION_SECONDS } from '../limits/oauth.ts'
import { AUTHORIZE_PATH, CONSENT_PATH, DEVICE_PATH, LINK_PATH, TOKEN_PATH } from './addresses.ts'
import type { Clients } from './clients.ts'
import type { OauthSessions } from './oauth-sessions.ts'
import { type StateDeps, stateAdapters } from './state-adapter.ts'

export interface AuthorizationServerDeps extends Pick<StateDeps, 'db' | 'writes' | 'clock'> {
  readonly issuer: string
  /** A secret for cookies. */
  readonly cookieKey: string
  readonly accessTokenSeconds: number
  readonly clients: Pick<Clients, 'find'>
  readonly oauthSessions: Pick<OauthSessions, 'issue' | 'endGrant'>
  readonly log: Logger
}

/** Somebody has decided about a device before. */
export class DecidedBefore extends Error {}

/** The one resource that tokens are for. */
export const RESOURCE = 'urn:matrix:client'
export const COOKIE_PREFIX = 'hearth-oauth-'
export const SESSION_COOKIE = `${COOKIE_PREFIX}session`
/** The scope of a request or of what came from it. @throws OidcError `invalid_scope` */
function resourceInfo(accessTokenSeconds: number) {
  return ({ oidc }: Context) => {
    const { AuthorizationCode, DeviceCode } = oidc.entities
    const scope = readScope(oidc.params.scope ?? AuthorizationCode?.scope ?? DeviceCode?.scope ?? '')
    if ('problem' in scope) throw new errors.InvalidScope(scope.problem)
    return { scope: scope.granted, accessTokenFormat: 'opaque', accessTokenTTL: accessTokenSeconds }
  }
}

/** A person is asked each time: the browser's session is no consent. */
function interactions() {
  const { Check, Prompt } = interactionPolicy
  const unless = (name: 'login' | 'consent') =>
    new Check(name, `${name} is needed`, `${name}_required`, ({ oidc }) => oidc.result?.[name] === undefined)
  return {
    policy: [
      new Prompt({ name: 'login', requestable: true }, unless('login')),
      new Prompt({ name: 'consent', requestable: true }, unless('consent')),
      new Prompt({ name: 'select_account', requestable: true }),
      new Prompt({ name: 'create', requestable: true }),
    ],
    url: (_context: Context, { uid }: { readonly uid: string }) => `${CONSENT_PATH}/${uid}`,
  }
}

const OFF = { enabled: false }

/** How the library is set up: only what the specification of clients needs of it. */
export function configuration(deps: AuthorizationServerDeps, provider: () => Provider): object {
  const { db, accessTokenSeconds } = deps
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const full = () => new errors.CustomOIDCProviderError('temporarily_unavailable', 'too much is under way')
  return {
    adapter: stateAdapters({
      ...deps,
      errors: {
        full,
        usedTwice: () => new errors.InvalidGrant('it was used before'),
        decided: () => new DecidedBefore(),
        slowDown: () => new errors.CustomOIDCProviderError('slow_down', 'ask less often'),
      },
    }),
    // No ID token is ever made; the library wants to be able to.
    jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), kid: 'unused', alg: 'ES256', use: 'sig' }] },
    clientDefaults: { id_token_signed_response_alg: 'ES256' },
    clientAuthMethods: ['none'],
    responseTypes: ['code'],
    pkce: { required: () => true },
    allowOmittingSingleRegisteredRedirectUri: false,
    scopes: [],
    cookies: {
      keys: [deps.cookieKey],
      names: {
        session: SESSION_COOKIE,
        interaction: `${COOKIE_PREFIX}interaction`,
        resume: `${COOKIE_PREFIX}resume`,
      },
    },
    routes: {
      authorization: AUTHORIZE_PATH,
      token: TOKEN_PATH,
      device_authorization: DEVICE_PATH,
      code_verification: LINK_PATH,
    },
    features: {
      devInteractions: OFF,
      rpInitiatedLogout: OFF,
      userinfo: OFF,
      dPoP: OFF,
      pushedAuthorizationRequests: OFF,
      deviceFlow: {
        enabled: true,
        charset: 'base-20',
        mask: '****-****',
        deviceInfo: ({ ip, headers }: { ip: string; headers: IncomingMessage['headers'] }) => ({
          ip,
          ua: headers['user-agent']?.slice(0, 256),
        }),
      },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => RESOURCE,
        useGrantedResource: () => true,
        getResourceServerInfo: resourceInfo(accessTokenSeconds),
      },
    },
    interactions: interactions(),
    ttl: {
      AccessToken: accessTokenSeconds,
      AuthorizationCode: AUTHORIZATION_CODE_SECONDS,
      DeviceCode: DEVICE_CODE_SECONDS,
      Grant: GRANT_SECONDS,
      Interaction: INTERACTION_SECONDS,
      RefreshToken: GRANT_SECONDS,
      Session: INTERACTION_SECONDS,
    },
    issueRefreshToken: () => true,
    expiresWithSession: () => false,
    revokeGrantPolicy: () => true,
    async findAccount(_context: Context, accountId: string) {
      const account = await findGrantable(db, Number(accountId))
      return account && { accountId, claims: async () => ({ sub: accountId }) }
    },
    async loadExistingGrant({ oidc }: Context) {
      const grantId = oidc.result?.consent?.grantId
      return grantId === undefined ? undefined : provider().Grant.find(grantId)
    },
    renderError(context: Context, out: object) {
      context.body = out
    },
  }
}
