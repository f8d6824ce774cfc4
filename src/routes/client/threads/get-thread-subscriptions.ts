import { ProtocolError } from '../../../core/errors.ts'
import { Type } from '../../../core/shapes.ts'
import { decodeStreamToken } from '../../../domain/sync/token.ts'
import { endpoint } from '../../../http/endpoint.ts'

export const getThreadSubscriptions = endpoint(
  'GET CU/io.element.msc4308/thread_subscriptions',
  {
    auth: 'user',
    guests: true,
    limited: 'other',
    query: Type.Object({
      // The one direction: from the newest change back.
      dir: Type.Optional(Type.Literal('b')),
      from: Type.Optional(Type.String()),
      to: Type.Optional(Type.String()),
      limit: Type.Optional(Type.Integer({ minimum: 1 })),
    }),
  },
  ({ requester, query: { from, to, limit } }, { threadSubscriptions }) =>
    threadSubscriptions.list(requester, { from: positionOf(from), to: positionOf(to), limit }),
)

/** The ledger position in a token of this list or of sync. */
function positionOf(token: string | undefined): number | undefined {
  if (token === undefined) return undefined
  if (/^\d{1,15}$/.test(token)) return Number(token)
  const position = decodeStreamToken(token)
  if (position === undefined) throw new ProtocolError('M_INVALID_PARAM', "'from' or 'to' is no token of this server.")
  return position.ledger
}
