import { ProtocolError } from '../../../core/errors.ts'

/** Where the older ways to log in and to register are switched off. */
export function onlyOauth(): ProtocolError {
  return new ProtocolError('M_FORBIDDEN', 'People sign in in the browser here: use a client that knows OAuth 2.0.')
}
