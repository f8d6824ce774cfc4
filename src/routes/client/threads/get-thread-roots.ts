import { Type } from '../../../core/shapes.ts'
import { endpoint, rawReply } from '../../../http/endpoint.ts'

export const getThreadRoots = endpoint(
  'GET C1/rooms/{roomId}/threads',
  {
    auth: 'user',
    anywhere: true,
    guests: true,
    limited: 'other',
    query: Type.Object({
      include: Type.Optional(Type.Union([Type.Literal('all'), Type.Literal('participated')])),
      limit: Type.Optional(Type.Integer({ minimum: 1 })),
      from: Type.Optional(Type.String()),
    }),
    also: ['CU/org.matrix.msc3856/rooms/{roomId}/threads'],
  },
  async ({ requester, params: { roomId }, query: { include, limit, from } }, { roomReader, sync }) => {
    const wish = { participated: include === 'participated', limit, from }
    return rawReply(await sync.answer(requester, () => roomReader.threads(requester, roomId, wish)))
  },
)
