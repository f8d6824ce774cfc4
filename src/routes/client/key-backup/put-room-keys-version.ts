import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'
import { ObjectOrText } from './room-keys-shapes.ts'

const Body = Type.Object({ algorithm: Type.String(), auth_data: ObjectOrText, version: Type.Optional(Type.String()) })

export const putRoomKeysVersion = endpoint(
  'PUT C/room_keys/version/{version}',
  { auth: 'user', suspended: true, limited: 'other', also: ['CU/room_keys/version/{version}'], body: Body },
  async ({ requester, params, body }, { keyBackups }) => {
    await keyBackups.update(requester.userNid, params.version, body)
    return {}
  },
)
