import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'

const Body = Type.Object({
  new_version: Type.String(),
  additional_creators: Type.Optional(Type.Array(Type.String())),
})

export const upgradeRoom = endpoint(
  'POST C/rooms/{roomId}/upgrade',
  { auth: 'user', limited: 'create_room', body: Body },
  async ({ requester, params, body }, { upgrades }) => {
    const { new_version: version, additional_creators: additionalCreators = [] } = body
    return { replacement_room: await upgrades.upgrade(requester, params.roomId, { version, additionalCreators }) }
  },
)
