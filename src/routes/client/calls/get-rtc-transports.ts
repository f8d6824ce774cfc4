import { ProtocolError } from '../../../core/errors.ts'
import { endpoint } from '../../../http/endpoint.ts'

/** Clients take an empty list for a mistake, and this code for a server without transports. */
export const getRtcTransports = endpoint(
  'GET C1/rtc/transports',
  { auth: 'user', guests: true, limited: 'other', also: ['CU/org.matrix.msc4143/rtc/transports'] },
  (_request, { calls }) => {
    if (calls.rtc.transports.length > 0) return { rtc_transports: calls.rtc.transports }
    throw new ProtocolError('M_UNRECOGNIZED', 'This server carries no calls of groups.')
  },
)
