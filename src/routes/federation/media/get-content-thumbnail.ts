import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'
import { ThumbnailQuery, thumbnailWishOf } from '../../../http/thumbnail-query.ts'
import { multipartReply } from './multipart-reply.ts'
import { ownMediaOf, WaitQuery } from './own-media-of.ts'

export const getContentThumbnail = endpoint(
  'GET F/v1/media/thumbnail/{mediaId}',
  { auth: 'server', outOfTurn: true, limited: 'media', query: Type.Object({ ...ThumbnailQuery, ...WaitQuery }) },
  async (request, services) => {
    const { media } = services
    const found = await ownMediaOf(request, services)
    return multipartReply(media, await media.thumbnails.of(found, thumbnailWishOf(request.query)))
  },
)
