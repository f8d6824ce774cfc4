import { endpoint } from '../../../http/endpoint.ts'

export const getProtocolMetadata = endpoint(
  'GET C/thirdparty/protocol/{protocol}',
  { auth: 'user', limited: 'other' },
  ({ params }, { appservices }) => appservices.thirdParty.protocol(params.protocol),
)
