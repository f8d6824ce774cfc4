import type { Logger } from 'pino'
import type { Config } from '../config/schema.ts'
import type { AppserviceServices } from '../domain/appservices/appservice-services.ts'
import { loadRegistrations } from '../domain/appservices/load-registrations.ts'
import { registrationsStamp } from '../outbound/registration-files.ts'

const LOOK_EVERY_MS = 1_000

/** Loads changed registration files. A mistake in one is logged once, and the services stay as they are. */
export function startRegistrationReloader(parts: {
  readonly config: Config
  readonly appservices: Pick<AppserviceServices, 'registry' | 'accounts'>
  readonly log: Logger
}): { close(): Promise<void> } {
  const { config, appservices, log } = parts
  const paths = config.application_services.registrations
  if (paths.length === 0) return { close: async () => {} }
  // The caller has just read the files, perhaps before the last change, so they are read once more.
  let known: string | undefined
  let looking: Promise<void> | undefined
  let timer: NodeJS.Timeout | undefined

  async function look(): Promise<void> {
    const stamp = await registrationsStamp(paths)
    if (stamp === known) return
    const registrations = await loadRegistrations(config)
    const isFirst = known === undefined
    known = stamp
    if (isFirst && appservices.registry.isAsNow(registrations)) return
    appservices.registry.replace(registrations)
    await appservices.accounts.makeSenders()
  }

  let complained = ''
  function complain(error: Error): void {
    if (error.message === complained) return
    complained = error.message
    log.error({ problems: error.message.split('\n') }, 'changed registrations are not in force: they have mistakes')
  }

  function schedule(): void {
    timer = setTimeout(() => {
      looking = look()
        .then(() => {
          complained = ''
        }, complain)
        .finally(schedule)
    }, LOOK_EVERY_MS).unref()
  }
  schedule()

  return {
    async close() {
      clearTimeout(timer)
      await looking
      clearTimeout(timer)
    },
  }
}
