import { endpoint } from '../../../http/endpoint.ts'
import { requireGuestsField, requireOwn } from '../own-user.ts'

export const deleteProfileField = endpoint(
  'DELETE C/profile/{userId}/{keyName}',
  { auth: 'user', guests: true, limited: 'other' },
  async ({ requester, params: { userId, keyName } }, { profiles }) => {
    requireOwn(requester, userId)
    requireGuestsField(requester, keyName)
    await profiles.setField(requester, keyName, undefined)
    return {}
  },
)
