import type { JsonValue } from '../../../core/json.ts'
import { Type } from '../../../core/shapes.ts'
import { endpoint, rawReply } from '../../../http/endpoint.ts'
import { pdusOf } from './pdus-of.ts'

const AnyList = Type.Array(Type.Unsafe<JsonValue>({}))

const Body = Type.Object({
  origin: Type.String(),
  origin_server_ts: Type.Integer(),
  pdus: AnyList,
  edus: Type.Optional(AnyList),
})

export const sendTransaction = endpoint(
  'PUT F/v1/send/{txnId}',
  { auth: 'server', body: Body },
  async (request, { federation }) => {
    const { requester, params, body } = request
    const answer = await federation.transactions.receive({
      origin: requester.server,
      txnId: params.txnId,
      pdus: pdusOf(request),
      edus: body.edus ?? [],
    })
    return rawReply({ body: answer })
  },
)
