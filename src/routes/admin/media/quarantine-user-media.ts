import { endpoint } from '../../../http/endpoint.ts'

export const quarantineUserMedia = endpoint(
  'POST /_synapse/admin/v1/user/{userId}/media/quarantine',
  { auth: 'admin' },
  async ({ params, requester }, { media }) => ({
    num_quarantined: await media.desk.quarantineOf(params.userId, requester.name),
  }),
)
