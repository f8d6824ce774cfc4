import { endpoint } from '../../../http/endpoint.ts'
import { searchFields } from '../../../http/search-fields.ts'

export const queryLocationByProtocol = endpoint(
  'GET C/thirdparty/location/{protocol}',
  { auth: 'user', limited: 'other' },
  ({ params, uri }, { appservices }) => appservices.thirdParty.search('location', params.protocol, searchFields(uri)),
)
