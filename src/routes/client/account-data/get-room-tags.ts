import { tagsIn } from '../../../domain/accounts/tags.ts'
import { endpoint } from '../../../http/endpoint.ts'
import { requireOwn } from '../own-user.ts'

export const getRoomTags = endpoint(
  'GET C/user/{userId}/rooms/{roomId}/tags',
  { auth: 'user', anywhere: true, guests: true },
  async ({ requester, params: { userId, roomId } }, { accountData }) => {
    requireOwn(requester, userId)
    return { tags: tagsIn(await accountData.find(requester.userNid, roomId, 'm.tag')) }
  },
)
