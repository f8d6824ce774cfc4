import { endpoint } from '../../../http/endpoint.ts'
import { mxcOf } from '../../media/mxc-of.ts'

export const unquarantineMedia = endpoint(
  'POST /_synapse/admin/v1/media/unquarantine/{serverName}/{mediaId}',
  { auth: 'admin' },
  async ({ params }, { media }) => {
    await media.desk.unquarantine(mxcOf(params))
    return {}
  },
)
