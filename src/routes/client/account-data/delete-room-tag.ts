import { tagsIn } from '../../../domain/accounts/tags.ts'
import { endpoint } from '../../../http/endpoint.ts'
import { requireOwn } from '../own-user.ts'

export const deleteRoomTag = endpoint(
  'DELETE C/user/{userId}/rooms/{roomId}/tags/{tag}',
  { auth: 'user', suspended: true, guests: true, limited: 'other' },
  async ({ requester, params: { userId, roomId, tag } }, { accountData }) => {
    requireOwn(requester, userId)
    await accountData.change(requester.userNid, roomId, 'm.tag', (before) => {
      const { [tag]: removed, ...tags } = tagsIn(before)
      return removed === undefined ? undefined : { ...before, tags }
    })
    return {}
  },
)
