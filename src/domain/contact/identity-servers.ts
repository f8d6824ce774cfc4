import type { Logger } from 'pino'
import type { Config } from '../../config/schema.ts'
import { ProtocolError } from '../../core/errors.ts'
import { type ServerName, splitServerName } from '../../core/ids.ts'
import type { SigningKey } from '../../core/signing/key.ts'
import type { IdentityClient } from '../../outbound/identity.ts'
import type { IdentityServices } from '../identity/identity-services.ts'
import { isIdentityServed } from '../identity/is-served.ts'
import { identityNames } from '../identity/names.ts'
import type { IdentityServer } from './identity-server.ts'
import { createKeyValidity, type KeyValidity } from './key-validity.ts'
import { createOwnIdentityServer } from './own-identity-server.ts'
import { createRemoteIdentityServer } from './remote-identity-server.ts'

/** `lookup(server, accessToken, ...)` for `lookup(accessToken, ...)`, and so on. */
type Named<Methods> = {
  readonly [Name in keyof Methods]: Methods[Name] extends (...args: infer Args) => infer Result
    ? (server: string, ...args: Args) => Result
    : never
}

/**
 * The identity servers that users may name (`id_server`): ours, and those that the operator trusts. The first argument of every method is
 * the name.
 * @throws ProtocolError `M_INVALID_PARAM` for an invalid server name, `M_SERVER_NOT_TRUSTED`, and as {@link IdentityServer}
 */
export interface IdentityServers extends Named<IdentityServer> {
  /** The normal form of a name, as it is stored. */
  normalise(name: string): ServerName
  readonly isKeyValid: KeyValidity
}

export function createIdentityServers(deps: {
  readonly config: Pick<
    Config,
    'server_name' | 'public_base_url' | 'listen' | 'identity' | 'roles' | 'identity_servers'
  >
  readonly identity: IdentityServices
  readonly client: IdentityClient
  readonly signingKey: SigningKey
  readonly log: Logger
}): IdentityServers {
  const { config, identity } = deps
  const own = isIdentityServed(config) ? createOwnIdentityServer({ config, identity }) : undefined
  const ownNames = new Set(own === undefined ? [] : identityNames(config).map((name) => name.toLowerCase()))
  const trusted = new Set(config.identity_servers.trusted.map((name) => name.toLowerCase()))

  function normalise(name: string): ServerName {
    const parts = splitServerName(name)
    if (parts === undefined || parts.port === 0 || /\.\.|^\.|\.$/.test(parts.host)) {
      throw new ProtocolError('M_INVALID_PARAM', "Key 'id_server' must be a host name with an optional port, no more.")
    }
    const lower = name.toLowerCase() as ServerName
    if (ownNames.has(lower)) return config.server_name
    if (trusted.has(lower)) return lower
    throw new ProtocolError('M_SERVER_NOT_TRUSTED', `This homeserver does not trust the identity server ${lower}.`)
  }

  function at(name: string): IdentityServer {
    const server = normalise(name)
    return own !== undefined && server === config.server_name ? own : createRemoteIdentityServer(deps, server)
  }

  return {
    normalise,
    isKeyValid: createKeyValidity({ ...deps, own: own && identity }),
    lookup: async (server, ...args) => at(server).lookup(...args),
    storeInvite: async (server, ...args) => at(server).storeInvite(...args),
    requestToken: async (server, ...args) => at(server).requestToken(...args),
    getValidated3pid: async (server, ...args) => at(server).getValidated3pid(...args),
    bind: async (server, ...args) => at(server).bind(...args),
    unbind: async (server, ...args) => at(server).unbind(...args),
  }
}
