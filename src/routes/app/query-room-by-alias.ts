import { endpoint } from '../../http/endpoint.ts'

export const queryRoomByAlias = endpoint(
  'GET A/rooms/{roomAlias}',
  { auth: 'hosted' },
  async ({ requester, params }) => {
    await requester.hosted.requireAlias(params.roomAlias)
    return {}
  },
)
