import { AnyObject, endpoint } from '../../../http/endpoint.ts'

export const onBindThirdPartyIdentifierPost = endpoint(
  'POST F/v1/3pid/onbind',
  { auth: 'none', limited: 'federation', body: AnyObject },
  async ({ body }, { thirdPartyInvites }) => {
    await thirdPartyInvites.bound(body)
    return {}
  },
)
