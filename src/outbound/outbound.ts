import type { Logger } from 'pino'
import type { Config } from '../config/schema.ts'
import type { ServerName } from '../core/ids.ts'
import { DIALECTS, type Dialect } from '../core/paths.ts'
import type { ServerPolicy } from '../core/server-policy.ts'
import type { SigningKey } from '../core/signing/key.ts'
import { requestText, requestTextFrom } from '../core/signing/request-signature.ts'
import { writeXMatrix } from '../core/signing/x-matrix.ts'
import { type AppserviceClient, createAppserviceClient } from './appservice.ts'
import { createDiscovery, type Discovery } from './discovery.ts'
import { createFederation, type Federation, type RequestSigner } from './federation.ts'
import { createGuardedClient, type GuardedClient } from './http.ts'
import { createNames, type Names } from './names.ts'
import {
  createPushGatewayClient,
  PUSH_CONNECTIONS,
  PUSH_CONNECTIONS_OPEN,
  type PushGatewayClient,
} from './push-gateway.ts'
import { createWellKnown } from './well-known.ts'

/** The clients for other servers and services. */
export interface Outbound {
  readonly client: GuardedClient
  readonly names: Names
  readonly discovery: Discovery
  readonly federation: Federation
  readonly appservices: AppserviceClient
  readonly pushGateways: PushGatewayClient
  /** Calls any address, and past the proxy: for those that the operator configured, and most are on this machine. */
  readonly near: GuardedClient
  close(): Promise<void>
}

export async function openOutbound(deps: {
  readonly config: Pick<Config, 'outbound' | 'server_name'>
  readonly signingKey: SigningKey
  readonly policy: ServerPolicy
  readonly version: string
  readonly now: () => number
  readonly log: Logger
  /** The resolver of names; by default DNS. */
  readonly names?: Names
}): Promise<Outbound> {
  const { config, signingKey, policy, version, now, log } = deps
  const names = deps.names ?? createNames()
  const client = await createGuardedClient({ config, log, names, userAgent: `Hearth/${version}` })
  const dialects = dialectsOf(config.outbound.dialect)
  const wellKnown = createWellKnown({ client, now, dialects })
  const discovery = createDiscovery({ names, wellKnown, now, random: Math.random })
  const sign = signerOf(config.server_name, signingKey)
  const federation = createFederation({ client, discovery, dialects, sign, policy })
  const { proxy: _past, ...past } = config.outbound
  const anywhere = { outbound: { ...past, allow_ranges: ['0.0.0.0/0', '::/0'] } }
  const near = await createGuardedClient({ config: anywhere, log, names, userAgent: `Hearth/${version}` })
  const appservices = createAppserviceClient({ client: near, dialect: config.outbound.dialect, now })
  // Separate, because a busy gateway needs more connections than other servers do.
  const pushing = await createGuardedClient({
    ...{ config, log, names, userAgent: `Hearth/${version}` },
    connections: PUSH_CONNECTIONS,
    openConnections: PUSH_CONNECTIONS_OPEN,
  })
  const pushGateways = createPushGatewayClient(pushing)
  return {
    ...{ client, names, discovery, federation, appservices, pushGateways, near },
    async close() {
      await Promise.all([client.close(), near.close(), pushing.close()])
    },
  }
}

/** Signs in a server's name. */
export function signerOf(origin: ServerName, key: SigningKey): RequestSigner {
  return ({ body, ...request }) => {
    const toSign = { ...request, origin }
    const text = body === undefined ? requestText(toSign) : requestTextFrom(body, toSign)
    return writeXMatrix({ origin, destination: request.destination, keyId: key.keyId, signature: key.sign(text) })
  }
}

function dialectsOf(chosen: Config['outbound']['dialect']): readonly Dialect[] {
  return chosen === 'auto' ? DIALECTS : [chosen]
}
