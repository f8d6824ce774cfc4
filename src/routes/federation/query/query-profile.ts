import { ProtocolError } from '../../../core/errors.ts'
import { serverOf, type UserId } from '../../../core/ids.ts'
import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'

const Query = Type.Object({
  user_id: Type.Unsafe<UserId>({ type: 'string', format: 'user-id' }),
  field: Type.Optional(Type.String()),
})

export const queryProfile = endpoint(
  'GET F/v1/query/profile',
  { auth: 'server', query: Query },
  async ({ query: { user_id: userId, field } }, { profiles, profileAccess, config }) => {
    profileAccess.requireForServers()
    if (serverOf(userId) !== config.server_name) {
      throw new ProtocolError('M_NOT_FOUND', `${userId} is not a user of this server.`)
    }
    const profile = await profiles.get(userId)
    if (field === undefined) return profile
    const value = Object.hasOwn(profile, field) ? profile[field] : undefined
    return value === undefined ? {} : { [field]: value }
  },
)
