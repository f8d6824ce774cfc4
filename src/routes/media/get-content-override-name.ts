import { readFileName } from '../../core/media/content-disposition.ts'
import { Type } from '../../core/shapes.ts'
import { endpoint } from '../../http/endpoint.ts'
import { mediaReply } from '../../http/media-reply.ts'
import { OldQuery, oldWishOf } from './wish-of.ts'

export const getContentOverrideName = endpoint(
  'GET M/download/{serverName}/{mediaId}/{fileName}',
  { auth: 'optional', anywhere: true, guests: true, limited: 'media', query: Type.Object(OldQuery) },
  async (request, { media, config }) => {
    const found = await media.downloads.find(oldWishOf(request, config.media.without_token === 'open'))
    const named = { ...found, fileName: readFileName(request.params.fileName) }
    return mediaReply(request, media, named, request.requester === undefined)
  },
)
