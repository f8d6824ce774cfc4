import { ProtocolError } from '../../../core/errors.ts'
import { AnyObject, endpoint } from '../../../http/endpoint.ts'
import { requireGuestsField, requireOwn } from '../own-user.ts'

export const setProfileField = endpoint(
  'PUT C/profile/{userId}/{keyName}',
  {
    auth: 'user',
    guests: true,
    limited: 'other',
    also: ['CU/uk.tcpip.msc4133/profile/{userId}/{keyName}'],
    body: AnyObject,
  },
  async ({ requester, params: { userId, keyName }, body }, { profiles }) => {
    requireOwn(requester, userId)
    requireGuestsField(requester, keyName)
    if (!Object.hasOwn(body, keyName)) throw new ProtocolError('M_MISSING_PARAM', `Key '${keyName}' is missing.`)
    await profiles.change(requester, { [keyName]: body[keyName] })
    return {}
  },
)
