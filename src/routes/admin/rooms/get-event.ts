import { endpoint, rawReply } from '../../../http/endpoint.ts'

export const getEvent = endpoint(
  'GET /_synapse/admin/v1/fetch_event/{eventId}',
  { auth: 'admin', recorded: true },
  async ({ params }, { admin }) => rawReply({ body: (await admin.rooms.event(params.eventId)).toBuffer() }),
)
