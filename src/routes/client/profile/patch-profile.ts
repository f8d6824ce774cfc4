import { AnyObject, endpoint } from '../../../http/endpoint.ts'
import { requireGuestsField, requireOwn } from '../own-user.ts'

/** Changes the fields that the body names; null removes one. The answer is the whole profile. */
export const patchProfile = endpoint(
  'PATCH C/profile/{userId}',
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
    await profiles.change(requester, body)
    return profiles.get(userId)
  },
)
