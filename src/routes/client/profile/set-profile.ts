import { AnyObject, endpoint } from '../../../http/endpoint.ts'
import { requireGuestsField, requireOwn } from '../own-user.ts'

/** Sets the whole profile: fields that the body does not name are removed. */
export const setProfile = endpoint(
  'PUT C/profile/{userId}',
  {
    auth: 'user',
    guests: true,
    limited: 'other',
    also: ['CU/uk.tcpip.msc4133/profile/{userId}'],
    body: AnyObject,
  },
  async ({ requester, params: { userId }, body }, { profiles }) => {
    requireOwn(requester, userId)
    for (const name of Object.keys(body)) requireGuestsField(requester, name)
    await profiles.replace(requester, body)
    return {}
  },
)
