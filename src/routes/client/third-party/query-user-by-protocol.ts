import { endpoint } from '../../../http/endpoint.ts'
import { searchFields } from '../../../http/search-fields.ts'

export const queryUserByProtocol = endpoint(
  'GET C/thirdparty/user/{protocol}',
  { auth: 'user', limited: 'other' },
  ({ params, uri }, { appservices }) => appservices.thirdParty.search('user', params.protocol, searchFields(uri)),
)
