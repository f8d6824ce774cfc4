import { endpoint } from '../../../http/endpoint.ts'

export const deleteForwardExtremities = endpoint(
  'DELETE /_synapse/admin/v1/rooms/{roomIdOrAlias}/forward_extremities',
  { auth: 'admin', grave: true },
  async ({ params }, { admin, aliases }) => ({
    deleted: await admin.roomReading.joinExtremities((await aliases.targetOf(params.roomIdOrAlias)).room_id),
  }),
)
