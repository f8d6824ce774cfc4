import { checkTag, tagsIn } from '../../../domain/accounts/tags.ts'
import { AnyObject, endpoint } from '../../../http/endpoint.ts'
import { requireOwn } from '../own-user.ts'

export const setRoomTag = endpoint(
  'PUT C/user/{userId}/rooms/{roomId}/tags/{tag}',
  { auth: 'user', suspended: true, guests: true, limited: 'other', body: AnyObject },
  async ({ requester, params: { userId, roomId, tag }, body }, { accountData }) => {
    requireOwn(requester, userId)
    checkTag(tag, body)
    await accountData.change(requester.userNid, roomId, 'm.tag', (before) => ({
      ...before,
      tags: { ...tagsIn(before), [tag]: body },
    }))
    return {}
  },
)
