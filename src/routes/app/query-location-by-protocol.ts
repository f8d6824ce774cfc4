import { endpoint } from '../../http/endpoint.ts'
import { searchFields } from '../../http/search-fields.ts'

export const queryLocationByProtocol = endpoint(
  'GET A/thirdparty/location/{protocol}',
  { auth: 'hosted' },
  ({ requester, params, uri }) => requester.hosted.search('location', params.protocol, searchFields(uri)),
)
