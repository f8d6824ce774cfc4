import { Type } from '../../core/shapes.ts'
import { endpoint } from '../../http/endpoint.ts'
import { goTo } from '../oauth/answer.ts'
import { accountPage } from './account-page.ts'
import { whenSignedIn } from './signed-in.ts'

const Query = Type.Object({
  action: Type.Optional(Type.String()),
  device_id: Type.Optional(Type.String({ maxLength: 255 })),
  done: Type.Optional(Type.String()),
})

const ACCOUNT = '/_hearth/account'

/** Where a client's request for an action leads (client-server API, "OAuth 2.0 account management"), in all its spellings. */
function placeOf(action: string, device: string): string | undefined {
  const session = `${ACCOUNT}/session?${new URLSearchParams({ device_id: device })}`
  switch (action.replace(/^org\.matrix\./, '')) {
    case 'device_view':
    case 'session_view':
      return session
    case 'device_delete':
    case 'session_end':
      return `${session}&end=yes`
    case 'account_deactivate':
      return `${ACCOUNT}/deactivate`
    case 'cross_signing_reset':
      return `${ACCOUNT}/keys`
    default:
      return undefined
  }
}

export const showAccount = endpoint(
  'GET /_hearth/account',
  { auth: 'none', limited: 'other', query: Query },
  async (request, services) => {
    const { action = '', device_id = '', done } = request.query
    const place = placeOf(action, device_id)
    if (place !== undefined) return goTo(place)
    return whenSignedIn(request, services, { proof: 'signed in', next: ACCOUNT }, (owner) =>
      accountPage(services, request, owner, { done }),
    )
  },
)
