import { endpoint } from '../../http/endpoint.ts'

export const getProtocolMetadata = endpoint(
  'GET A/thirdparty/protocol/{protocol}',
  { auth: 'hosted' },
  ({ requester, params }) => requester.hosted.protocol(params.protocol),
)
