import { ProtocolError } from '../../core/errors.ts'
import { endpoint } from '../../http/endpoint.ts'

export const getWellknownSupport = endpoint(
  'GET /.well-known/{root}/support',
  { auth: 'none' },
  (_request, { config }) => {
    const { support_page, support_email } = config.well_known
    if (support_page === undefined && support_email === undefined) {
      throw new ProtocolError('M_NOT_FOUND', 'This server names no support contact.')
    }
    return {
      ...(support_email && { contacts: [{ role: 'm.role.admin', email_address: support_email }] }),
      ...(support_page && { support_page }),
    }
  },
)
