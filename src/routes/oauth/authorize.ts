import { AUTHORIZE_PATH } from '../../domain/oauth/addresses.ts'
import { endpoint } from '../../http/endpoint.ts'
import { passOn } from './answer.ts'
import { authorizationQuery } from './authorization-query.ts'
import { browserAnswer } from './browser-answer.ts'

/** The authorization endpoint (RFC 6749): a client sends a person here, to be asked. */
export const authorize = endpoint(
  'GET /_hearth/oauth/authorize',
  { auth: 'none', limited: 'login' },
  async (request, services) => {
    const query = authorizationQuery(request.uri)
    const answer = await passOn(services, request, { method: 'GET', path: `${AUTHORIZE_PATH}?${query}` })
    const client = await services.oauth.clients.find(query.get('client_id') ?? '')
    const isNative = client?.metadata.application_type === 'native'
    return browserAnswer(services, answer, { isNative, client }, request)
  },
)
