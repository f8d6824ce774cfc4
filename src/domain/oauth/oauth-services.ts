import { hash } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Tx } from '../../store/db/db.ts'
import { forgetClients } from '../../store/oauth/clients.ts'
import { forgetKeyApprovals } from '../../store/oauth/key-approvals.ts'
import { forgetStates } from '../../store/oauth/states.ts'
import { forgetWebSessions } from '../../store/oauth/web-sessions.ts'
import type { AccountServices } from '../accounts/account-services.ts'
import type { HomeserverBase } from '../base.ts'
import { IDLE_CLIENT_KEPT_MS, UNUSED_CLIENT_KEPT_MS, WEB_SESSION_IDLE_MS } from '../limits/oauth.ts'
import { isOauthServed, issuerOf } from './addresses.ts'
import { archiveChores } from './archive/archives.ts'
import type { AuthorizationServer } from './authorization-server.ts'
import { type Clients, createClients } from './clients.ts'
import { createOauthSessions, type OauthSessions } from './oauth-sessions.ts'
import { createOwnAccount, type OwnAccount } from './own-account.ts'
import { createWebSessions, type WebSessions } from './web-sessions.ts'

/** Signing in by OAuth 2.0, and to the pages of this server. */
export interface OauthServices {
  /** Whether clients can sign in by OAuth. The pages are there in any case. */
  readonly isServed: boolean
  readonly clients: Clients
  readonly sessions: OauthSessions
  readonly webSessions: WebSessions
  readonly ownAccount: OwnAccount
  /** Loads the authorisation server, unless that was done before: it takes memory that nobody needs who does not sign in. */
  server(): Promise<AuthorizationServer>
  /** Begins to load it, for somebody who is about to sign in. */
  prepare(): void
}

export function createOauthServices(parts: {
  readonly base: Pick<HomeserverBase, 'config' | 'db' | 'clock' | 'random' | 'log' | 'sessions'> & {
    readonly signingKey: Pick<HomeserverBase['signingKey'], 'sign'>
  }
  readonly accounts: Pick<
    AccountServices,
    'devices' | 'tokenRenewal' | 'logins' | 'newLogins' | 'loginTokens' | 'passwordChanges'
  >
}): OauthServices {
  const { config, db, clock, random, log, sessions, signingKey } = parts.base
  const { devices, tokenRenewal, logins, newLogins, loginTokens, passwordChanges } = parts.accounts
  const clients = createClients({ db, clock, random })
  const oauthSessions = createOauthSessions({ db, clock, random, config, sessions, devices, tokenRenewal, newLogins })
  let loading: Promise<AuthorizationServer> | undefined

  /** A piece at a time: others wait for the longest piece only. */
  async function load(): Promise<AuthorizationServer> {
    await import('koa')
    await nextTurn()
    await import('jose')
    await nextTurn()
    const { createAuthorizationServer } = await import('./authorization-server.ts')
    return createAuthorizationServer({
      db,
      writes: db.asyncCommits(),
      clock,
      log,
      clients,
      oauthSessions,
      issuer: issuerOf(config),
      // Its signatures are deterministic, and no other text that this server signs begins so.
      cookieKey: hash('sha256', signingKey.sign('hearth: cookies of authorisations'), 'base64url'),
      accessTokenSeconds: config.sessions.access_token_minutes * 60,
    })
  }

  function server(): Promise<AuthorizationServer> {
    loading ??= load()
    return loading
  }

  return {
    isServed: isOauthServed(config),
    clients,
    sessions: oauthSessions,
    webSessions: createWebSessions({ db, clock, random, logins, loginTokens }),
    ownAccount: createOwnAccount({ db, logins, passwordChanges }),
    server,
    prepare: () =>
      void server().catch((err: unknown) => log.error({ err }, 'the authorisation server cannot be loaded')),
  }
}

export const oauthChores: readonly ((tx: Tx, now: number, atMost: number) => Promise<number>)[] = [
  ...archiveChores,
  forgetStates,
  forgetKeyApprovals,
  (tx, now, atMost) => forgetWebSessions(tx, now - WEB_SESSION_IDLE_MS, atMost),
  (tx, now, atMost) =>
    forgetClients(tx, { unused: now - UNUSED_CLIENT_KEPT_MS, idle: now - IDLE_CLIENT_KEPT_MS }, atMost),
]
