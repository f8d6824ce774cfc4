import { endpoint } from '../../../http/endpoint.ts'
import { UserMediaQuery, userMediaPageOf } from './user-media-query.ts'

export const deleteUserMedia = endpoint(
  'DELETE /_synapse/admin/v1/users/{userId}/media',
  { auth: 'admin', grave: true, query: UserMediaQuery },
  ({ params, query }, { media }) => media.desk.deleteOf(params.userId, ...userMediaPageOf(query)),
)
