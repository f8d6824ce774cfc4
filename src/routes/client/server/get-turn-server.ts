import { ProtocolError } from '../../../core/errors.ts'
import { endpoint } from '../../../http/endpoint.ts'

/** 403 tells clients not to ask again. */
export const getTurnServer = endpoint('GET C/voip/turnServer', { auth: 'user', limited: 'other' }, () => {
  throw new ProtocolError('M_FORBIDDEN', 'This server offers no TURN server.')
})
