import { endpoint } from '../../http/endpoint.ts'

export const getProtocolMetadata = endpoint(
  'GET A/thirdparty/protocol/{protocol}',
  { auth: 'hosted' },
  async ({ requester, params, dialect }) => {
    const found = await requester.hosted.protocol(params.protocol)
    return dialect === 'proto' ? { [params.protocol]: found } : found
  },
)
