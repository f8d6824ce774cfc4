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
  async ({ body }, { federation, clock }) => {
    const wanted = Object.entries(body.server_keys).flatMap(([server, keys]) => {
      const moments = Object.values(keys).map((key) => key.minimum_valid_until_ts ?? clock.now())
      return isServerName(server) ? [[server, Math.max(clock.now(), ...moments)] as const] : []
    })
    return { server_keys: await federation.notary.query(new Map(wanted)) }
  },
)
