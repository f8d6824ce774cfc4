import { endpoint } from '../../http/endpoint.ts'

export const getConfigAuthed = endpoint(
  'GET C1/media/config',
  { auth: 'user', guests: true },
  (_request, { media }) => ({ 'm.upload.size': media.uploads.maxBytes }),
)
