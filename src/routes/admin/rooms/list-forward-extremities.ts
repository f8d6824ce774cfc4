import { endpoint } from '../../../http/endpoint.ts'

export const listForwardExtremities = endpoint(
  'GET /_synapse/admin/v1/rooms/{roomIdOrAlias}/forward_extremities',
  { auth: 'admin' },
  async ({ params }, { admin, aliases }) =>
    admin.roomReading.extremities((await aliases.targetOf(params.roomIdOrAlias)).room_id),
)
