import type { Logger } from 'pino'
import type { Config } from '../../config/schema.ts'
import type { Database } from '../../store/db.ts'
import type { Sessions } from '../accounts/sessions.ts'
import type { Clock, Random } from '../clock.ts'
import { type AppserviceAccounts, createAppserviceAccounts } from './appservice-accounts.ts'
import { type AppserviceCallers, createAppserviceCallers } from './callers.ts'
import { createExclusiveNames, type ExclusiveNames } from './exclusive-names.ts'
import { loadRegistrations } from './load-registrations.ts'
import { type AppserviceRegistry, createAppserviceRegistry } from './registry.ts'

/** What is known of application services before accounts are: others ask whether a name is free. */
export interface AppserviceNames {
  readonly registry: AppserviceRegistry
  readonly exclusive: ExclusiveNames
}

/** @throws RegistrationError for what is wrong in a registration file */
export async function openAppserviceNames(config: Config, log: Logger): Promise<AppserviceNames> {
  const registry = createAppserviceRegistry({ serverName: config.server_name, log })
  registry.replace(await loadRegistrations(config))
  return { registry, exclusive: createExclusiveNames(registry) }
}

/** Application services, as endpoints know them. */
export interface AppserviceServices {
  readonly registry: AppserviceRegistry
  readonly callers: AppserviceCallers
  readonly accounts: AppserviceAccounts
}

export async function createAppserviceServices(deps: {
  readonly names: AppserviceNames
  readonly config: Config
  readonly db: Database
  readonly clock: Clock
  readonly random: Random
  readonly sessions: Sessions
}): Promise<AppserviceServices> {
  const { registry } = deps.names
  const serverName = deps.config.server_name
  const accounts = createAppserviceAccounts({ ...deps, registry })
  await accounts.makeSenders()
  return { registry, accounts, callers: createAppserviceCallers({ ...deps, serverName, registry }) }
}
