import { DEVICE_GRANT } from '../../core/oauth/client-metadata.ts'
import { Type } from '../../core/shapes.ts'
import { DEVICE_PATH } from '../../domain/oauth/addresses.ts'
import { endpoint } from '../../http/endpoint.ts'
import { clientAnswerOf, isForm, oauthError, passOn } from './answer.ts'
import { matrixScope } from './authorization-query.ts'

/** The device authorization endpoint (RFC 8628): for apps on devices where people cannot type, or that another device signs in. */
export const authorizeDevice = endpoint(
  'POST /_hearth/oauth/device',
  { auth: 'none', limited: 'login', body: Type.Object({}), forms: true },
  async (request, services) => {
    const form = new URLSearchParams(request.bodyText)
    if (isForm(request)) matrixScope(form)
    const client = await services.oauth.clients.find(form.get('client_id') ?? '')
    if (client !== undefined && !client.metadata.grant_types.includes(DEVICE_GRANT)) {
      return oauthError('unauthorized_client', 'This client did not register for this grant.')
    }
    return clientAnswerOf(await passOn(services, request, { method: 'POST', path: DEVICE_PATH, body: form.toString() }))
  },
)
