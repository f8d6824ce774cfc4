import type { Logger } from 'pino'
import type { Config } from '../config/schema.ts'
import { DIALECTS, type Dialect } from '../core/paths.ts'
import { createDiscovery, type Discovery } from './discovery.ts'
import { createFederation, type Federation } from './federation.ts'
import { createGuardedClient, type GuardedClient } from './http.ts'
import { createNames, type Names } from './names.ts'
import { createWellKnown } from './well-known.ts'

/** How this server reaches others. */
export interface Outbound {
  readonly client: GuardedClient
  readonly names: Names
  readonly discovery: Discovery
  readonly federation: Federation
  close(): Promise<void>
}

export async function openOutbound(deps: {
  readonly config: Pick<Config, 'outbound'>
  readonly version: string
  readonly now: () => number
  readonly log: Logger
  /** Who resolves names; DNS without. */
  readonly names?: Names
}): Promise<Outbound> {
  const { config, version, now, log } = deps
  const names = deps.names ?? createNames()
  const client = await createGuardedClient({ config, log, names, userAgent: `Hearth/${version}` })
  const dialects = dialectsOf(config.outbound.dialect)
  const wellKnown = createWellKnown({ client, now, dialects })
  const discovery = createDiscovery({ names, wellKnown, now, random: Math.random })
  const federation = createFederation({ client, discovery, dialects })
  return { client, names, discovery, federation, close: () => client.close() }
}

function dialectsOf(chosen: Config['outbound']['dialect']): readonly Dialect[] {
  return chosen === 'auto' ? DIALECTS : [chosen]
}
