import { ProtocolError } from '../../core/errors.ts'
import { endpoint } from '../../http/endpoint.ts'

export const getLivekitHealth = endpoint('GET /_hearth/livekit/healthz', { auth: 'none' }, (_request, { calls }) => {
  if (calls.rtc.transports.length > 0) return {}
  throw new ProtocolError('M_UNRECOGNIZED', 'This server carries no calls of groups.')
})
