import { ProtocolError } from '../../../core/errors.ts'
import type { Dialect } from '../../../core/paths.ts'
import { type Static, Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'

const Body = Type.Object({
  access_token: Type.String(),
  token_type: Type.Optional(Type.String()),
  expires_in: Type.Optional(Type.Integer()),
  proto_server_name: Type.Optional(Type.String()),
  matrix_server_name: Type.Optional(Type.String()),
})

function missing(name: string): ProtocolError {
  return new ProtocolError('M_MISSING_PARAMS', `Key '${name}' is missing.`)
}

/** The homeserver's name. In the published interface clients may leave out the keys that are not needed. */
function serverNameIn(body: Static<typeof Body>, dialect: Dialect): string {
  const { token_type, expires_in } = body
  if (dialect === 'proto' && token_type === undefined) throw missing('token_type')
  if (token_type !== undefined && token_type.toLowerCase() !== 'bearer') {
    throw new ProtocolError('M_INVALID_PARAM', 'Key \'token_type\' must be "Bearer".')
  }
  const named = { matrix: body.matrix_server_name, proto: body.proto_server_name }
  const serverName = named[dialect] ?? named.matrix ?? named.proto
  if (serverName === undefined) throw missing(`${dialect}_server_name`)
  if (dialect === 'proto' && expires_in === undefined) throw missing('expires_in')
  return serverName
}

export const registerAccount = endpoint(
  'POST P2/account/register',
  { auth: 'none', body: Body },
  async ({ body, dialect }, { identity }) => {
    const token = await identity.accounts.register(serverNameIn(body, dialect), body.access_token)
    return { token, access_token: token }
  },
)
