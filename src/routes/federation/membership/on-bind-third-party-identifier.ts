import { AnyObject, endpoint } from '../../../http/endpoint.ts'

/** The request itself is not signed; the signatures in its body are verified. Identity services in use send it as POST. */
export const onBindThirdPartyIdentifier = endpoint(
  'PUT F/v1/3pid/onbind',
  { auth: 'none', limited: 'federation', body: AnyObject },
  async ({ body }, { thirdPartyInvites }) => {
    await thirdPartyInvites.bound(body)
    return {}
  },
)
