import { endpoint } from '../../../http/endpoint.ts'
import { mxcOf } from '../../media/mxc-of.ts'

export const deleteMedia = endpoint(
  'DELETE /_synapse/admin/v1/media/{serverName}/{mediaId}',
  { auth: 'admin', grave: true },
  ({ params }, { media }) => media.desk.delete(mxcOf(params)),
)
