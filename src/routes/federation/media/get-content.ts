import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'
import { multipartReply } from './multipart-reply.ts'
import { ownMediaOf, WaitQuery } from './own-media-of.ts'

export const getContent = endpoint(
  'GET F/v1/media/download/{mediaId}',
  { auth: 'server', outOfTurn: true, limited: 'media', query: Type.Object(WaitQuery) },
  async (request, services) => multipartReply(services.media, await ownMediaOf(request, services)),
)
