import { endpoint } from '../../../http/endpoint.ts'
import { mxcOf } from '../../media/mxc-of.ts'

export const protectMedia = endpoint(
  'POST /_synapse/admin/v1/media/protect/{mediaId}',
  { auth: 'admin' },
  async ({ params: { mediaId } }, { media, config }) => {
    await media.desk.protect(mxcOf({ serverName: config.server_name, mediaId }), true)
    return {}
  },
)
