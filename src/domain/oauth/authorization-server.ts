import type { IncomingMessage, ServerResponse } from 'node:http'
import inject from 'light-my-request'
import { type Context, Provider } from 'oidc-provider'
import { ProtocolError } from '../../core/errors.ts'
import { readScope } from '../../core/oauth/scope.ts'
import type { Clock } from '../clock.ts'
import { DEVICE_POLL_SECONDS, SESSIONS_AT_ONCE, STEPS_AT_ONCE } from '../limits/oauth.ts'
import { CONSENT_PATH, TOKEN_PATH } from './addresses.ts'
import {
  type AuthorizationServerDeps,
  COOKIE_PREFIX,
  configuration,
  DecidedBefore,
  RESOURCE,
  SESSION_COOKIE,
} from './provider-configuration.ts'
import { createTurns } from './turns.ts'

/** A request of a browser or an app, for the library. */
export interface ProviderRequest {
  readonly method: 'GET' | 'POST'
  /** Path and query. */
  readonly path: string
  readonly cookies: string | undefined
  readonly contentType?: string | undefined
  readonly body?: string | undefined
  readonly ip: string
  readonly userAgent: string | undefined
}

export interface ProviderAnswer {
  readonly status: number
  readonly location: string | undefined
  readonly cookies: readonly string[]
  readonly body: string
}

/** What a client asks a person for, while the person decides. */
export interface PendingAuthorization {
  readonly id: string
  readonly clientId: string
  readonly redirectUri: string
  readonly scope: string
  readonly wantsAccount: boolean
  readonly loginHint: string | undefined
}

/** A device that waits for its code to be entered. */
export interface PendingDevice {
  readonly clientId: string
  readonly scope: string
  readonly ip: string | undefined
  readonly userAgent: string | undefined
  readonly startedAt: number
}

/** The authorisation server (RFC 6749, 7636, 8628, 9207), on top of the library oidc-provider. */
export interface AuthorizationServer {
  handle(request: ProviderRequest): Promise<ProviderAnswer>
  /** The authorisation that a browser has begun, by its cookies; undefined if it has ended. */
  pending(cookies: string | undefined): Promise<PendingAuthorization | undefined>
  /**
   * Records what a person decided about the authorisation of this id. Gives whose it was and where their browser goes next; undefined if it
   * has ended, or another browser began it.
   */
  decide(
    cookies: string | undefined,
    id: string,
    decision: { readonly userNid: number } | 'denied',
  ): Promise<{ readonly clientId: string; readonly location: string } | undefined>
  /** The device with this code, as a person typed it. */
  pendingDevice(userCode: string): Promise<PendingDevice | undefined>
  /** False if the device has stopped waiting, or if somebody else has decided first. */
  decideDevice(userCode: string, decision: { readonly userNid: number } | 'denied'): Promise<boolean>
}

/** Letters that are hard to confuse; none makes a word. */
const USER_CODE = /^[BCDFGHJKLMNPQRSTVWXZ]{8}$/

/** A code as it is stored, whatever a person typed between its letters. */
function readUserCode(typed: string): string | undefined {
  const code = typed.toUpperCase().replace(/[^A-Z]/g, '')
  return USER_CODE.test(code) ? code : undefined
}

/** Gives apps sessions of this server instead of the library's tokens. */
function issueSessions(provider: Provider, { clients, oauthSessions, log }: AuthorizationServerDeps): void {
  async function answer(context: Context): Promise<object> {
    const token = context.oidc.entities.AccessToken
    const client = token && (await clients.find(token.clientId))
    const scope = readScope(token?.scope ?? '')
    if (token === undefined || client === undefined || 'problem' in scope) throw new Error('a grant without a session')
    const { deviceId, granted } = scope
    const { accountId, grantId } = token
    const { ip } = context
    return oauthSessions.issue({ userNid: Number(accountId), client, deviceId, scope: granted, grantId, ip })
  }

  provider.use(async (context, next) => {
    await next()
    if (context.status !== 200) return
    if (context.oidc.route === 'device_authorization') {
      context.body = { ...(context.body as object), interval: DEVICE_POLL_SECONDS }
    }
    if (context.oidc.route !== 'token') return
    try {
      context.body = await answer(context)
    } catch (error) {
      const isRefused = error instanceof ProtocolError && error.status < 500
      if (!isRefused) log.error({ err: error }, 'no session could be made for an app')
      context.status = isRefused ? 400 : 500
      context.body = isRefused
        ? { error: 'invalid_grant', error_description: error.message }
        : { error: 'server_error', error_description: 'The session could not be made. Try again.' }
    }
  })
}

/** Only the library's own cookies, and none of its sessions: each authorisation stands alone. */
function ownCookies(cookies: string | undefined): string {
  const pairs = (cookies ?? '').split('; ').filter((pair) => pair.startsWith(COOKIE_PREFIX))
  return pairs.filter((pair) => !pair.startsWith(SESSION_COOKIE)).join('; ')
}

/** The scopes that a request or its grant names. The library has had them checked. */
function grantedOf(scope: string): string {
  const read = readScope(scope)
  if ('problem' in read) throw new Error(read.problem)
  return read.granted
}

type MakeGrant = (clientId: string, userNid: number, scope: string) => Promise<string>

function grantMaker(provider: Provider): MakeGrant {
  return async (clientId, userNid, scope) => {
    const grant = new provider.Grant({ clientId, accountId: String(userNid) })
    grant.addResourceScope(RESOURCE, scope)
    return grant.save()
  }
}

/** Devices that wait for a person to enter their code. */
function deviceDecisions(
  provider: Provider,
  makeGrant: MakeGrant,
  clock: Clock,
): Pick<AuthorizationServer, 'pendingDevice' | 'decideDevice'> {
  async function waiting(typed: string) {
    const userCode = readUserCode(typed)
    const code = userCode === undefined ? undefined : await provider.DeviceCode.findByUserCode(userCode)
    return code?.isValid && code.accountId === undefined && code.error === undefined ? code : undefined
  }

  return {
    async pendingDevice(typed) {
      const code = await waiting(typed)
      if (code === undefined) return undefined
      const { clientId, params, deviceInfo, iat } = code
      const { ip, ua: userAgent } = deviceInfo ?? {}
      return { clientId, scope: grantedOf(params.scope ?? ''), ip, userAgent, startedAt: iat * 1000 }
    },

    async decideDevice(typed, decision) {
      const code = await waiting(typed)
      if (code === undefined) return false
      // Nobody can type the code again.
      code.userCode = undefined
      if (decision === 'denied') {
        Object.assign(code, { error: 'access_denied', errorDescription: 'The person said no.' })
      } else {
        const scope = grantedOf(code.params.scope ?? '')
        const grantId = await makeGrant(code.clientId, decision.userNid, scope)
        const authTime = Math.floor(clock.now() / 1000)
        Object.assign(code, { accountId: String(decision.userNid), grantId, scope, resource: RESOURCE, authTime })
      }
      try {
        await code.save()
        return true
      } catch (error) {
        if (error instanceof DecidedBefore) return false
        throw error
      }
    },
  }
}

export function createAuthorizationServer(deps: AuthorizationServerDeps): AuthorizationServer {
  const { issuer, clock } = deps
  const turns = createTurns(STEPS_AT_ONCE)
  const makingSessions = createTurns(SESSIONS_AT_ONCE)
  const { host, protocol } = new URL(issuer)
  const provider: Provider = new Provider(
    issuer,
    configuration(deps, () => provider),
  )
  // Addresses are made of the configured one, which `handle` passes on as a proxy does.
  provider.proxy = true
  provider.on('server_error', (_context, error) => deps.log.error({ err: error }, 'an authorisation failed'))
  issueSessions(provider, deps)
  const serve = provider.callback()
  const makeGrant = grantMaker(provider)
  const headersOf = (cookies: string | undefined) => ({
    host,
    'x-forwarded-proto': protocol.slice(0, -1),
    cookie: ownCookies(cookies),
    accept: 'application/json',
  })

  /** Runs a question of the library that wants a request; undefined if what it asks for has ended. */
  async function withRequest<T>(
    cookies: string | undefined,
    ask: (request: IncomingMessage, response: ServerResponse) => Promise<T>,
  ): Promise<T | undefined> {
    let found: T | undefined
    let failure: unknown
    await inject(
      (request, response) => {
        const asked = ask(request as unknown as IncomingMessage, response as unknown as ServerResponse)
        void asked
          .then(
            (answer) => {
              found = answer
            },
            (error: unknown) => {
              failure = error
            },
          )
          .finally(() => response.end())
      },
      { method: 'GET', url: CONSENT_PATH, headers: headersOf(cookies) },
    )
    if (failure instanceof Error && failure.name !== 'SessionNotFound') throw failure
    return found
  }

  return {
    async handle({ method, path, cookies, contentType, body, ip, userAgent }) {
      const headers = {
        ...headersOf(cookies),
        'x-forwarded-for': ip,
        ...(userAgent !== undefined && { 'user-agent': userAgent }),
        ...(contentType !== undefined && { 'content-type': contentType }),
      }
      const request = { method, url: path, headers, ...(body !== undefined && { payload: body }) }
      const answer = await (path === TOKEN_PATH ? makingSessions : turns).run(() => inject(serve, request))
      const cookieLines = [answer.headers['set-cookie'] ?? []].flat()
      return {
        status: answer.statusCode,
        location: answer.headers.location as string | undefined,
        cookies: cookieLines.filter((line) => !line.startsWith(SESSION_COOKIE)),
        body: answer.payload,
      }
    },

    async pending(cookies) {
      const found = await turns.run(() =>
        withRequest(cookies, (request, response) => provider.interactionDetails(request, response)),
      )
      if (found === undefined) return undefined
      const { client_id = '', redirect_uri = '', scope = '', prompt, login_hint } = found.params
      return {
        id: found.uid,
        clientId: client_id,
        redirectUri: redirect_uri,
        scope: grantedOf(scope),
        wantsAccount: prompt?.split(' ').includes('create') === true,
        loginHint: login_hint,
      }
    },

    async decide(cookies, id, decision) {
      const step = async (request: IncomingMessage, response: ServerResponse) => {
        const found = await provider.interactionDetails(request, response)
        if (found.uid !== id) return undefined
        const { client_id: clientId = '', scope = '', prompt = '' } = found.params
        if (decision === 'denied') {
          found.result = { error: 'access_denied', error_description: 'The person said no.' }
        } else {
          const consent = { grantId: await makeGrant(clientId, decision.userNid, grantedOf(scope)) }
          const done = Object.fromEntries(prompt.split(' ').map((name) => [name, {}]))
          const login = { accountId: String(decision.userNid), remember: false }
          found.result = { ...found.lastSubmission, ...done, login, consent }
        }
        await found.persist()
        return { clientId, location: found.returnTo }
      }
      return turns.run(() => withRequest(cookies, step))
    },

    ...deviceDecisions(provider, makeGrant, clock),
  }
}
