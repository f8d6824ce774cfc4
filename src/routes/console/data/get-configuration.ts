import { endpoint } from '../../../http/endpoint.ts'

export const getConfiguration = endpoint(
  'GET /_hearth/admin/v1/configuration',
  { auth: 'admin', recorded: true },
  (_request, { settings }) => ({ settings: settings() }),
)
