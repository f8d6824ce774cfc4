import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'

const Body = Type.Object({ visibility: Type.Optional(Type.Union([Type.Literal('public'), Type.Literal('private')])) })

export const setRoomVisibilityOnDirectory = endpoint(
  'PUT C/directory/list/room/{roomId}',
  { auth: 'user', limited: 'other', body: Body, bodyOptional: true },
  async ({ requester, params, body }, { directory }) => {
    await directory.setVisibility(requester, params.roomId, body.visibility ?? 'public')
    return {}
  },
)
