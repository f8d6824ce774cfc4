import { endpoint } from '../../http/endpoint.ts'
import { mxcOf } from './mxc-of.ts'
import { UploadQuery, uploadOf } from './upload-of.ts'

export const uploadContentToMxc = endpoint(
  'PUT media/v3/upload/{serverName}/{mediaId}',
  { auth: 'user', limited: 'media', streamed: true, query: UploadQuery },
  async (request, { media }) => {
    await media.uploads.complete(request.requester, mxcOf(request.params), uploadOf(request))
    return {}
  },
)
