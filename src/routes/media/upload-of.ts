import { Type } from '../../core/shapes.ts'
import type { Upload } from '../../domain/media/uploads.ts'
import type { EndpointRequest } from '../../http/request.ts'

export const UploadQuery = Type.Object({ filename: Type.Optional(Type.String()) })

/** The file in the body of a request. */
export function uploadOf(
  request: Pick<EndpointRequest, 'header' | 'stream'> & { readonly query: { readonly filename?: string } },
): Upload {
  const length = request.header('content-length')
  return {
    source: request.stream,
    contentType: request.header('content-type'),
    fileName: request.query.filename,
    announcedBytes: length === undefined ? undefined : Number(length),
  }
}
