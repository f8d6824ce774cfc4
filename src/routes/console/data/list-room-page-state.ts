import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'
import { PageQuery, pageOf } from '../../admin/page-query.ts'

const Query = Type.Object({ from: PageQuery.from, limit: PageQuery.limit })

export const listRoomPageState = endpoint(
  'GET /_hearth/admin/v1/rooms/{roomId}/state',
  { auth: 'admin', recorded: true, query: Query },
  ({ params, query }, { admin }) => admin.views.roomPages.state(params.roomId, pageOf(query)),
)
