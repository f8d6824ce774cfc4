import { Type } from '../../core/shapes.ts'
import { endpoint } from '../../http/endpoint.ts'
import { sessionPage } from './session-page.ts'
import { whenSignedIn } from './signed-in.ts'

const Query = Type.Object({
  device_id: Type.Optional(Type.String({ maxLength: 255 })),
  end: Type.Optional(Type.String()),
})

export const showSession = endpoint(
  'GET /_hearth/account/session',
  { auth: 'none', limited: 'other', query: Query },
  (request, services) => {
    const { device_id: deviceId = '', end } = request.query
    const next = `/_hearth/account/session?${new URLSearchParams({ device_id: deviceId, ...(end && { end: 'yes' }) })}`
    return whenSignedIn(request, services, { proof: 'signed in', next }, (owner) =>
      sessionPage(services, request, owner, { deviceId, isEnding: end !== undefined }),
    )
  },
)
