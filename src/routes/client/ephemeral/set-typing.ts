import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'
import { requireOwn } from '../own-user.ts'

const Body = Type.Object({ typing: Type.Boolean(), timeout: Type.Optional(Type.Integer({ minimum: 0 })) })

const DEFAULT_TIMEOUT_MS = 30_000

export const setTyping = endpoint(
  'PUT C/rooms/{roomId}/typing/{userId}',
  { auth: 'user', guests: true, limited: 'other', batched: true, body: Body },
  async ({ requester, params, body }, { typing }) => {
    requireOwn(requester, params.userId)
    await typing.set(requester, params.roomId, body.typing ? (body.timeout ?? DEFAULT_TIMEOUT_MS) : undefined)
    return {}
  },
)
