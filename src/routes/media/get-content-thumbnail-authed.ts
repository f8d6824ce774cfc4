import { Type } from '../../core/shapes.ts'
import { endpoint } from '../../http/endpoint.ts'
import { mediaReply } from '../../http/media-reply.ts'
import { ThumbnailQuery, thumbnailWishOf } from '../../http/thumbnail-query.ts'
import { HeldQuery, wishOf } from './wish-of.ts'

export const getContentThumbnailAuthed = endpoint(
  'GET C1/media/thumbnail/{serverName}/{mediaId}',
  {
    auth: 'user',
    anywhere: true,
    guests: true,
    limited: 'media',
    query: Type.Object({ ...ThumbnailQuery, ...HeldQuery }),
  },
  async (request, { media }) => {
    const found = await media.downloads.find(wishOf(request))
    const thumbnail = await media.thumbnails.of(found, thumbnailWishOf(request.query))
    return mediaReply(request, media, thumbnail, false)
  },
)
