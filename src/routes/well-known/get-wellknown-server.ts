import { ProtocolError } from '../../core/errors.ts'
import { endpoint } from '../../http/endpoint.ts'

export const getWellknownServer = endpoint(
  'GET /.well-known/{root}/server',
  { auth: 'none' },
  (_request, { config }) => {
    const { server } = config.well_known
    if (server === undefined) throw new ProtocolError('M_NOT_FOUND', 'Other servers reach this one by its name.')
    return { 'm.server': server }
  },
)
