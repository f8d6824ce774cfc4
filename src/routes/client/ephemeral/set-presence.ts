import { Type } from '../../../core/shapes.ts'
import { MAX_STATUS_CHARS } from '../../../domain/limits.ts'
import { endpoint } from '../../../http/endpoint.ts'
import { requireOwn } from '../own-user.ts'

const Body = Type.Object({
  presence: Type.Union([Type.Literal('online'), Type.Literal('offline'), Type.Literal('unavailable')]),
  status_msg: Type.Optional(Type.Union([Type.String({ maxLength: MAX_STATUS_CHARS }), Type.Null()])),
})

export const setPresence = endpoint(
  'PUT C/presence/{userId}/status',
  { auth: 'user', limited: 'other', body: Body },
  ({ requester, params, body }, { presence }) => {
    requireOwn(requester, params.userId)
    presence.set(requester, body.presence, body.status_msg ?? undefined)
    return {}
  },
)
