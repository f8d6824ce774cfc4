import { Type } from '../../core/shapes.ts'
import { endpoint } from '../../http/endpoint.ts'

/** Ignores `ts`, because only the newest preview is kept. */
export const getUrlPreview = endpoint(
  'GET M/preview_url',
  { auth: 'user', limited: 'media', query: Type.Object({ url: Type.String() }) },
  ({ query }, { media }) => media.previews.of(query.url),
)
