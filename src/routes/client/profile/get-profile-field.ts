import { ProtocolError } from '../../../core/errors.ts'
import { endpoint } from '../../../http/endpoint.ts'

/** If one of these is not set, the answer is an empty object instead of 404, as in earlier releases. */
const ALWAYS_THERE = new Set(['displayname', 'avatar_url'])

export const getProfileField = endpoint(
  'GET C/profile/{userId}/{keyName}',
  {
    auth: 'optional',
    anywhere: true,
    guests: true,
    limited: 'other',
    also: ['CU/uk.tcpip.msc4133/profile/{userId}/{keyName}'],
  },
  async ({ requester, params: { userId, keyName } }, { profiles, profileAccess }) => {
    await profileAccess.require(requester, userId)
    const value = await profiles.getField(userId, keyName)
    if (value !== undefined) return { [keyName]: value }
    if (ALWAYS_THERE.has(keyName)) return {}
    throw new ProtocolError('M_NOT_FOUND', 'This user has no such profile field.')
  },
)
