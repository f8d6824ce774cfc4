import { Type } from '../../core/shapes.ts'
import { endpoint } from '../../http/endpoint.ts'
import { mediaReply } from '../../http/media-reply.ts'
import { HeldQuery, wishOf } from './wish-of.ts'

export const getContentAuthed = endpoint(
  'GET C1/media/download/{serverName}/{mediaId}',
  { auth: 'user', anywhere: true, guests: true, limited: 'media', query: Type.Object(HeldQuery) },
  async (request, { media }) => mediaReply(request, media, await media.downloads.find(wishOf(request)), false),
)
