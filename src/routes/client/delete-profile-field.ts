import { endpoint } from '../../http/endpoint.ts'
import { requireOwn } from './own-user.ts'

export const deleteProfileField = endpoint(
  'DELETE C/profile/{userId}/{keyName}',
  { auth: 'user', limited: 'other' },
  async ({ requester, params: { userId, keyName } }, { profiles }) => {
    requireOwn(requester, userId)
    await profiles.setField(requester, keyName, undefined)
    return {}
  },
)
