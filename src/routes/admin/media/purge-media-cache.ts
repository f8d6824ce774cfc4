import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'
import { beforeTime } from './before-time.ts'

export const purgeMediaCache = endpoint(
  'POST /_synapse/admin/v1/purge_media_cache',
  { auth: 'admin', query: Type.Object({ before_ts: Type.Integer({ minimum: 0 }) }) },
  async ({ query }, { media }) => ({ deleted: await media.desk.purgeRemote(beforeTime(query.before_ts)) }),
)
