import { ProtocolError } from '../../../core/errors.ts'
import { Type } from '../../../core/shapes.ts'
import { isMarkerKind } from '../../../domain/rooms/read/receipts.ts'
import { endpoint } from '../../../http/endpoint.ts'

const Body = Type.Object({ thread_id: Type.Optional(Type.String({ minLength: 1 })) })

export const postReceipt = endpoint(
  'POST C/rooms/{roomId}/receipt/{receiptType}/{eventId}',
  { auth: 'user', suspended: true, guests: true, limited: 'other', batched: true, body: Body, bodyOptional: true },
  async ({ requester, params: { roomId, receiptType, eventId }, body }, { receipts }) => {
    if (!isMarkerKind(receiptType)) throw new ProtocolError('M_INVALID_PARAM', 'There is no such type of receipt.')
    await receipts.mark(requester, roomId, receiptType, eventId, body.thread_id)
    return {}
  },
)
