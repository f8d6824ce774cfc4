import { endpoint } from '../../../http/endpoint.ts'

export const getLocalAliases = endpoint(
  'GET C/rooms/{roomId}/aliases',
  { auth: 'user', guests: true, limited: 'other', also: ['CU/org.matrix.msc2432/rooms/{roomId}/aliases'] },
  async ({ requester, params }, { aliases }) => ({ aliases: await aliases.ofRoom(requester, params.roomId) }),
)
