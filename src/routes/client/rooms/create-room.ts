import { Type } from '../../../core/shapes.ts'
import { AnyObject, endpoint } from '../../../http/endpoint.ts'

const Body = Type.Object({
  visibility: Type.Optional(Type.Union([Type.Literal('public'), Type.Literal('private')])),
  preset: Type.Optional(
    Type.Union([Type.Literal('private_chat'), Type.Literal('public_chat'), Type.Literal('trusted_private_chat')]),
  ),
  room_alias_name: Type.Optional(Type.String()),
  name: Type.Optional(Type.String()),
  topic: Type.Optional(Type.String()),
  invite: Type.Optional(Type.Array(Type.String())),
  invite_3pid: Type.Optional(
    Type.Array(
      Type.Object({
        id_server: Type.String(),
        id_access_token: Type.String(),
        medium: Type.String(),
        address: Type.String(),
      }),
    ),
  ),
  room_version: Type.Optional(Type.String()),
  creation_content: Type.Optional(AnyObject),
  initial_state: Type.Optional(
    Type.Array(Type.Object({ type: Type.String(), state_key: Type.Optional(Type.String()), content: AnyObject })),
  ),
  power_level_content_override: Type.Optional(AnyObject),
  is_direct: Type.Optional(Type.Boolean()),
})

export const createRoom = endpoint(
  'POST C/createRoom',
  { auth: 'user', limited: 'create_room', body: Body, bodyOptional: true },
  async ({ requester, exactBody, bodyOffence }, { addressInvites }) => {
    const { roomId, alias } = await addressInvites.createRoom(requester, exactBody, bodyOffence)
    return { room_id: roomId, ...(alias === undefined ? {} : { room_alias: alias }) }
  },
)
