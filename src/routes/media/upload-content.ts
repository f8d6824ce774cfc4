import { writeMxc } from '../../core/mxc.ts'
import { endpoint } from '../../http/endpoint.ts'
import { UploadQuery, uploadOf } from './upload-of.ts'

export const uploadContent = endpoint(
  'POST M/upload',
  { auth: 'user', limited: 'media', streamed: true, query: UploadQuery },
  async (request, { media }) => ({
    content_uri: writeMxc(await media.uploads.upload(request.requester, uploadOf(request))),
  }),
)
