import { endpoint } from '../../../http/endpoint.ts'

export const getTokenOwner = endpoint(
  'GET C/account/whoami',
  { auth: 'user', anywhere: true, guests: true, limited: 'other' },
  ({ requester }) => ({
    user_id: requester.userId,
    ...(requester.deviceId !== '' && { device_id: requester.deviceId }),
    is_guest: requester.isGuest,
  }),
)
