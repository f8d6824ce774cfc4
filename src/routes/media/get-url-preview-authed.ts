import { Type } from '../../core/shapes.ts'
import { endpoint } from '../../http/endpoint.ts'

export const getUrlPreviewAuthed = endpoint(
  'GET C1/media/preview_url',
  { auth: 'user', limited: 'media', query: Type.Object({ url: Type.String() }) },
  ({ query }, { media }) => media.previews.of(query.url),
)
