import { isServerName } from '../../core/ids.ts'
import { type Static, Type } from '../../core/shapes.ts'
import { endpoint } from '../../http/endpoint.ts'

const Criteria = Type.Object({ minimum_valid_until_ts: Type.Optional(Type.Integer({ minimum: 0 })) })

type KeysWanted = Readonly<Record<string, Readonly<Record<string, Static<typeof Criteria>>>>>

const Body = Type.Object({
  server_keys: Type.Unsafe<KeysWanted>({
    type: 'object',
    additionalProperties: { type: 'object', additionalProperties: Criteria },
  }),
})

export const queryKeysOfServers = endpoint(
  'POST K/query',
  { auth: 'none', limited: 'federation', body: Body },
  async ({ body }, { federation }) => {
    const wanted = Object.entries(body.server_keys).flatMap(([server, keys]) => {
      const moments = Object.values(keys).flatMap((key) => key.minimum_valid_until_ts ?? [])
      const latest = moments.length === 0 ? undefined : Math.max(...moments)
      return isServerName(server) ? [[server, latest] as const] : []
    })
    return { server_keys: await federation.notary.query(new Map(wanted)) }
  },
)
