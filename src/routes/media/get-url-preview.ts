import { Type } from '../../core/shapes.ts'
import { endpoint } from '../../http/endpoint.ts'

/** The time of a preview is not looked at: there is none but the newest. */
export const getUrlPreview = endpoint(
  'GET M/preview_url',
  { auth: 'user', limited: 'media', query: Type.Object({ url: Type.String() }) },
  ({ query }, { media }) => media.previews.of(query.url),
)
