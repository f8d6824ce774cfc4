import { ProtocolError } from '../../../core/errors.ts'
import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'
import { beforeTime } from './before-time.ts'

const Query = Type.Object({
  before_ts: Type.Integer({ minimum: 0 }),
  size_gt: Type.Optional(Type.Integer({ minimum: 0 })),
  keep_profiles: Type.Optional(Type.Boolean()),
})

export const deleteOldMedia = endpoint(
  'POST /_synapse/admin/v1/media/delete',
  { auth: 'admin', grave: true, query: Query, also: ['/_synapse/admin/v1/media/{serverName}/delete'] },
  ({ params, query }, { media, config }) => {
    const { serverName = '' } = params as { readonly serverName?: string }
    if (serverName !== '' && serverName !== config.server_name)
      throw new ProtocolError(
        'M_INVALID_PARAM',
        'Only media of this server is deleted so; purge_media_cache removes that of others.',
      )
    const { before_ts: before, size_gt: above = 0, keep_profiles: keepAvatars = true } = query
    return media.desk.deleteOld({ before: beforeTime(before), above, keepAvatars })
  },
)
