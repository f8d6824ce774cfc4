import { endpoint } from '../../../http/endpoint.ts'

export const getProtocols = endpoint(
  'GET C/thirdparty/protocols',
  { auth: 'user', limited: 'other' },
  (_request, { appservices }) => appservices.thirdParty.protocols(),
)
