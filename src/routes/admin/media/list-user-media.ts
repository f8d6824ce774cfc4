import { endpoint } from '../../../http/endpoint.ts'
import { UserMediaQuery, userMediaPageOf } from './user-media-query.ts'

export const listUserMedia = endpoint(
  'GET /_synapse/admin/v1/users/{userId}/media',
  { auth: 'admin', recorded: true, query: UserMediaQuery },
  ({ params, query }, { media }) => media.desk.listOf(params.userId, ...userMediaPageOf(query)),
)
