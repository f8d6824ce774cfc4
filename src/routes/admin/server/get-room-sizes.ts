import { endpoint } from '../../../http/endpoint.ts'

export const getRoomSizes = endpoint(
  'GET /_synapse/admin/v1/statistics/database/rooms',
  { auth: 'admin' },
  async (_request, { admin }) => ({ rooms: await admin.statistics.roomSizes() }),
)
