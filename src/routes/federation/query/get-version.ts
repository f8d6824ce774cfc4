import { endpoint } from '../../../http/endpoint.ts'

export const getVersion = endpoint(
  'GET F/v1/version',
  { auth: 'none', limited: 'federation', also: ['F/version'] },
  (_, { version }) => ({
    server: { name: 'Hearth', version },
  }),
)
