import { AnyObject, endpoint } from '../../http/endpoint.ts'

export const sendTransaction = endpoint(
  'PUT A/transactions/{txnId}',
  { auth: 'hosted', body: AnyObject },
  async ({ requester, params, body }) => {
    await requester.hosted.take(params.txnId, body)
    return {}
  },
)
