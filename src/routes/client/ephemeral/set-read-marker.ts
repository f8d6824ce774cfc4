import type { EventId } from '../../../core/ids.ts'
import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'

const EventName = Type.Optional(Type.Unsafe<EventId>({ type: 'string', format: 'event-id' }))

const Body = Type.Object({ 'm.fully_read': EventName, 'm.read': EventName, 'm.read.private': EventName })

export const setReadMarker = endpoint(
  'POST C/rooms/{roomId}/read_markers',
  { auth: 'user', suspended: true, guests: true, limited: 'other', batched: true, body: Body },
  async ({ requester, params: { roomId }, body }, { receipts }) => {
    await receipts.markAll(requester, roomId, body)
    return {}
  },
)
