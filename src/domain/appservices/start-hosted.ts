import { pathToFileURL } from 'node:url'
import type { Logger } from 'pino'
import type { Database } from '../../store/db/db.ts'
import type { Clock } from '../clock.ts'
import type { Appservice } from './appservice.ts'
import { hostedAppservice } from './hosted.ts'
import type { CreateHostedService, HostedHost } from './hosted-service.ts'
import type { AppserviceRegistry } from './registry.ts'
import type { RunningAppservices } from './running-appservices.ts'

export interface HostedParts {
  readonly registry: AppserviceRegistry
  readonly running: RunningAppservices
  readonly db: Database
  readonly clock: Clock
  readonly log: Logger
  /** What a service may do. */
  hostOf(service: Appservice): HostedHost
}

/** Starts the registered services that run in this process, and from now on each that is registered later. */
export async function startHosted(parts: HostedParts): Promise<void> {
  parts.registry.onChange(() => void startNew(parts))
  await startNew(parts)
}

/** A service that fails to start does not affect the others or the server: its events wait for it. */
async function startNew(parts: HostedParts): Promise<void> {
  const { registry, running, log } = parts
  for (const service of registry.all()) {
    const { hosted: module } = service.registration
    if (module === undefined || running.has(service.id)) continue
    await startOne(parts, service, module).catch((err: unknown) =>
      log.error({ err, appservice: service.id }, 'a hosted application service could not be started'),
    )
  }
  running.dropUnregistered()
}

async function startOne(parts: HostedParts, service: Appservice, module: string): Promise<void> {
  const loaded = (await import(pathToFileURL(module).href)) as { createHostedService?: CreateHostedService }
  if (typeof loaded.createHostedService !== 'function') throw new Error(`${module} exports no createHostedService`)
  parts.running.add(hostedAppservice(parts, service.id, loaded.createHostedService(parts.hostOf(service))))
  parts.log.info({ appservice: service.id, module }, 'an application service runs in this process')
}
