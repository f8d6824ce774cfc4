import { endpoint } from '../../http/endpoint.ts'

export const getServerKey = endpoint(
  'GET K/server',
  { auth: 'none', limited: 'federation', also: ['K/server/{keyId}'] },
  (_request, { ownKeys }) => ownKeys.published(),
)
