import { endpoint } from '../../../http/endpoint.ts'
import { requireGuestsField, requireOwn } from '../own-user.ts'

export const deleteProfileField = endpoint(
  'DELETE C/profile/{userId}/{keyName}',
  { auth: 'user', guests: true, limited: 'other', also: ['CU/uk.tcpip.msc4133/profile/{userId}/{keyName}'] },
  async ({ requester, params: { userId, keyName } }, { profiles }) => {
    requireOwn(requester, userId)
    requireGuestsField(requester, keyName)
    await profiles.change(requester, { [keyName]: undefined })
    return {}
  },
)
