import { endpoint } from '../../http/endpoint.ts'

export const getLocalAliases = endpoint(
  'GET C/rooms/{roomId}/aliases',
  { auth: 'user', guests: true, limited: 'other' },
  async ({ requester, params }, { aliases }) => ({ aliases: await aliases.ofRoom(requester, params.roomId) }),
)
