import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'

const Body = Type.Object({ visibility: Type.Union([Type.Literal('public'), Type.Literal('private')]) })

export const updateAppserviceRoomDirectoryVisibility = endpoint(
  'PUT C/directory/list/appservice/{networkId}/{roomId}',
  { auth: 'user', limited: 'other', body: Body },
  async ({ requester, params, body }, { appservices }) => {
    await appservices.networkRooms.setVisibility(requester, params.networkId, params.roomId, body.visibility)
    return {}
  },
)
