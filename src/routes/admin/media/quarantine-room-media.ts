import { endpoint } from '../../../http/endpoint.ts'

export const quarantineRoomMedia = endpoint(
  'POST /_synapse/admin/v1/room/{roomId}/media/quarantine',
  { auth: 'admin', also: ['/_synapse/admin/v1/quarantine_media/{roomId}'] },
  async ({ params, requester }, { media }) => ({
    num_quarantined: await media.desk.quarantineInRoom(params.roomId, requester.name),
  }),
)
