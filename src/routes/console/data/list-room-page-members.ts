import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'
import { PageQuery, pageOf } from '../../admin/page-query.ts'

const Query = Type.Object({ from: PageQuery.from, limit: PageQuery.limit })

export const listRoomPageMembers = endpoint(
  'GET /_hearth/admin/v1/rooms/{roomId}/members',
  { auth: 'admin', query: Query },
  ({ params, query }, { admin }) => admin.views.roomPages.members(params.roomId, pageOf(query)),
)
