import { Type } from '../../core/shapes.ts'
import { endpoint } from '../../http/endpoint.ts'

const Query = Type.Object({ minimum_valid_until_ts: Type.Optional(Type.Integer({ minimum: 0 })) })

export const queryServerKeys = endpoint(
  'GET K/query/{serverName}',
  { auth: 'none', also: ['K/query/{serverName}/{keyId}'], limited: 'federation', query: Query },
  async ({ params: { serverName }, query }, { federation }) => {
    return { server_keys: await federation.notary.query(new Map([[serverName, query.minimum_valid_until_ts]])) }
  },
)
