import { AnyObject, endpoint } from '../../../http/endpoint.ts'

/** Nobody signs this request: what it says is believed for the signatures in it. Identity services in use send it as POST. */
export const onBindThirdPartyIdentifier = endpoint(
  'PUT F/v1/3pid/onbind',
  { auth: 'none', limited: 'federation', body: AnyObject },
  async ({ body }, { thirdPartyInvites }) => {
    await thirdPartyInvites.bound(body)
    return {}
  },
)
