import { endpoint } from '../../../http/endpoint.ts'

export const deleteUserMedia = endpoint(
  'DELETE /_synapse/admin/v1/users/{userId}/media',
  { auth: 'admin', grave: true },
  ({ params }, { media }) => media.desk.deleteOf(params.userId),
)
