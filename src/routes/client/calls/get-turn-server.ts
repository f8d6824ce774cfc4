import { endpoint } from '../../../http/endpoint.ts'

export const getTurnServer = endpoint(
  'GET C/voip/turnServer',
  { auth: 'user', guests: true, limited: 'other' },
  ({ requester }, { calls }) => calls.turn.credentialsFor(requester),
)
