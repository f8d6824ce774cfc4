import { AnyObject, endpoint } from '../../../http/endpoint.ts'
import { requireOwn } from '../own-user.ts'

export const defineFilter = endpoint(
  'POST C/user/{userId}/filter',
  { auth: 'user', limited: 'other', suspended: true, guests: true, body: AnyObject },
  async ({ requester, params, body }, { filters }) => {
    requireOwn(requester, params.userId)
    return { filter_id: await filters.define(requester.userNid, body) }
  },
)
