import { Type } from '../../core/shapes.ts'
import { endpoint } from '../../http/endpoint.ts'
import { doneWith } from './account-page.ts'
import { whenSubmitted } from './signed-in.ts'

const Form = Type.Object({
  form: Type.Optional(Type.String()),
  device_id: Type.Optional(Type.String({ maxLength: 255 })),
})

/** Ends a session, with its device. A sync that the app holds ends at once. */
export const endSession = endpoint(
  'POST /_hearth/account/session',
  { auth: 'none', limited: 'other', body: Form, forms: true },
  (request, services) => {
    const { device_id: deviceId = '' } = request.body
    const next = `/_hearth/account/session?${new URLSearchParams({ device_id: deviceId, end: 'yes' })}`
    return whenSubmitted(request, services, { proof: 'just now', next }, async ({ session }) => {
      await services.devices.remove(session.userNid, [deviceId])
      return doneWith('session_ended')
    })
  },
)
