import { endpoint } from '../../../http/endpoint.ts'
import { requireOwn } from '../own-user.ts'

export const getFilter = endpoint(
  'GET C/user/{userId}/filter/{filterId}',
  { auth: 'user', anywhere: true, guests: true },
  ({ requester, params }, { filters }) => {
    requireOwn(requester, params.userId)
    return filters.get(requester.userNid, params.filterId)
  },
)
