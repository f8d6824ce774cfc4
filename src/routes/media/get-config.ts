import { endpoint } from '../../http/endpoint.ts'

export const getConfig = endpoint('GET M/config', { auth: 'user', guests: true }, (_request, { media }) => ({
  'm.upload.size': media.uploads.maxBytes,
}))
