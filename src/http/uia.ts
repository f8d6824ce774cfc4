import { ProtocolError } from '../core/errors.ts'
import { isObject, type JsonObject, type JsonValue } from '../core/json.ts'
import { Type } from '../core/shapes.ts'
import type { UiaFlow } from '../domain/accounts/interactive-auth.ts'
import type { Requester } from '../domain/accounts/requester.ts'
import { networkOf } from '../domain/network.ts'
import { accountPage } from '../domain/oauth/addresses.ts'
import type { Services } from '../domain/services.ts'
import { Details, type Endpoint, type RawReply, rawReply } from './endpoint.ts'
import type { EndpointRequest, MountedRequest } from './request.ts'

/** The body of an operation that needs nothing but authentication. */
export const AuthBody = Type.Object({ auth: Type.Optional(Details) })

/**
 * The flows for endpoints that ask the account's owner to authenticate again, by password or single sign-on. Users of application services
 * are not asked, because no person is behind them.
 */
export async function ownProof(
  { requester }: Pick<EndpointRequest<unknown, unknown, unknown, Requester>, 'requester'>,
  { logins, config }: Services,
): Promise<readonly UiaFlow[] | undefined> {
  if (requester.appservice !== undefined) return undefined
  // Its client never sees a password, and people do this on the pages of this server (client-server API, "OAuth 2.0 account management").
  if (requester.isOauth) throw new ProtocolError('M_FORBIDDEN', `Do this on your account page: ${accountPage(config)}`)
  return logins.proofsOf(requester.userNid)
}

function authOf(body: JsonObject): JsonObject | undefined {
  const auth: JsonValue | undefined = body.auth
  if (auth === undefined) return undefined
  if (!isObject(auth)) throw new ProtocolError('M_BAD_JSON', "Key 'auth' must be an object.")
  return auth
}

/**
 * Runs user-interactive authentication for a request. Gives a 401 with the remaining stages, or undefined once all are complete and
 * `request.uia` holds the proof.
 */
export async function challengeOf(
  endpoint: Endpoint,
  request: MountedRequest,
  services: Services,
): Promise<RawReply | undefined> {
  const flows = await endpoint.options.uia?.(request, services)
  if (flows === undefined) return undefined
  const { requester } = request
  const { auth: _, ...body } = request.body as JsonObject
  const outcome = await services.interactiveAuth.advance({
    operation: `${endpoint.method} ${request.path}`,
    requester: requester !== undefined && 'userNid' in requester ? requester : undefined,
    address: networkOf(request.ip),
    auth: authOf(request.body as JsonObject),
    body,
    flows,
  })
  if ('challenge' in outcome) return rawReply({ status: 401, body: JSON.stringify(outcome.challenge) })
  const { auth } = request.body as JsonObject
  if (outcome.body !== undefined) request.body = { ...outcome.body, ...(auth !== undefined && { auth }) }
  request.uia = outcome.proof
  return undefined
}
