import { ProtocolError } from '../../core/errors.ts'
import { endpoint } from '../../http/endpoint.ts'

export const getRoomKeysVersionCurrent = endpoint(
  'GET C/room_keys/version',
  { auth: 'user', limited: 'other', also: ['CU/room_keys/version'] },
  () => {
    throw new ProtocolError('M_NOT_FOUND', 'You have no key backup.')
  },
)
