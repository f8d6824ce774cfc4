import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'
import { ObjectOrText } from './room-keys-shapes.ts'

const Body = Type.Object({ algorithm: Type.String(), auth_data: ObjectOrText })

export const postRoomKeysVersion = endpoint(
  'POST C/room_keys/version',
  { auth: 'user', suspended: true, limited: 'other', also: ['CU/room_keys/version'], body: Body },
  async ({ requester, body }, { keyBackups }) => ({ version: await keyBackups.create(requester.userNid, body) }),
)
