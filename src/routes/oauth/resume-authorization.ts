import { Type } from '../../core/shapes.ts'
import { AUTHORIZE_PATH } from '../../domain/oauth/addresses.ts'
import { endpoint } from '../../http/endpoint.ts'
import { passOn } from './answer.ts'
import { browserAnswer } from './browser-answer.ts'

/** After a person has decided: their browser goes back to the client. `client` is the client's id, if it is an app. */
export const resumeAuthorization = endpoint(
  'GET /_hearth/oauth/authorize/{id}',
  { auth: 'none', limited: 'other', query: Type.Object({ client: Type.Optional(Type.String()) }) },
  async (request, services) => {
    const path = `${AUTHORIZE_PATH}/${encodeURIComponent(request.params.id)}`
    const answer = await passOn(services, request, { method: 'GET', path })
    const client = await services.oauth.clients.find(request.query.client ?? '')
    const isNative = client?.metadata.application_type === 'native'
    return browserAnswer(services, answer, { isNative, client }, request)
  },
)
