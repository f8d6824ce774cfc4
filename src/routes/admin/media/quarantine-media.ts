import { endpoint } from '../../../http/endpoint.ts'
import { mxcOf } from '../../media/mxc-of.ts'

export const quarantineMedia = endpoint(
  'POST /_synapse/admin/v1/media/quarantine/{serverName}/{mediaId}',
  { auth: 'admin' },
  async ({ params, requester }, { media }) => {
    await media.desk.quarantine(mxcOf(params), requester.name)
    return {}
  },
)
