import { endpoint } from '../../http/endpoint.ts'
import { searchFields } from '../../http/search-fields.ts'

export const queryUserByProtocol = endpoint(
  'GET A/thirdparty/user/{protocol}',
  { auth: 'hosted' },
  ({ requester, params, uri }) => requester.hosted.search('user', params.protocol, searchFields(uri)),
)
