import { readFileName } from '../../core/media/content-disposition.ts'
import { Type } from '../../core/shapes.ts'
import { endpoint } from '../../http/endpoint.ts'
import { mediaReply } from '../../http/media-reply.ts'
import { HeldQuery, wishOf } from './wish-of.ts'

export const getContentOverrideNameAuthed = endpoint(
  'GET C1/media/download/{serverName}/{mediaId}/{fileName}',
  { auth: 'user', anywhere: true, guests: true, limited: 'media', query: Type.Object(HeldQuery) },
  async (request, { media }) => {
    const found = await media.downloads.find(wishOf(request))
    return mediaReply(request, media, { ...found, fileName: readFileName(request.params.fileName) }, false)
  },
)
