import { Type } from '../../core/shapes.ts'
import { endpoint } from '../../http/endpoint.ts'
import { mediaReply } from '../../http/media-reply.ts'
import { ThumbnailQuery, thumbnailWishOf } from '../../http/thumbnail-query.ts'
import { OldQuery, oldWishOf } from './wish-of.ts'

export const getContentThumbnail = endpoint(
  'GET M/thumbnail/{serverName}/{mediaId}',
  {
    auth: 'optional',
    anywhere: true,
    guests: true,
    limited: 'media',
    query: Type.Object({ ...ThumbnailQuery, ...OldQuery }),
  },
  async (request, { media, config }) => {
    const found = await media.downloads.find(oldWishOf(request, config.media.without_token === 'open'))
    const thumbnail = await media.thumbnails.of(found, thumbnailWishOf(request.query))
    return mediaReply(request, media, thumbnail, request.requester === undefined)
  },
)
