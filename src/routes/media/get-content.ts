import { Type } from '../../core/shapes.ts'
import { endpoint } from '../../http/endpoint.ts'
import { mediaReply } from '../../http/media-reply.ts'
import { OldQuery, oldWishOf } from './wish-of.ts'

export const getContent = endpoint(
  'GET M/download/{serverName}/{mediaId}',
  { auth: 'optional', anywhere: true, guests: true, limited: 'media', query: Type.Object(OldQuery) },
  async (request, { media, config }) => {
    const found = await media.downloads.find(oldWishOf(request, config.media.without_token === 'open'))
    return mediaReply(request, media, found, request.requester === undefined)
  },
)
