import { dirname, resolve } from 'node:path'
import type { Config } from '../../config/schema.ts'
import type { Engine } from '../../core/appservice/expression.ts'
import {
  conflictsOf,
  type ReadRegistration,
  type Registration,
  readRegistration,
} from '../../core/appservice/registration.ts'
import { readRegistrationFiles } from '../../outbound/registration-files.ts'
import { MAX_APPSERVICES } from '../limits.ts'

/** All errors in the registration files, one line each: where, and what. */
export class RegistrationError extends Error {
  constructor(problems: readonly { readonly origin: string; readonly message: string }[]) {
    super(problems.map(({ origin, message }) => `${origin}: ${message}`).join('\n'))
    this.name = 'RegistrationError'
  }
}

/**
 * Reads the registrations that the configuration names.
 * @throws RegistrationError
 */
export async function loadRegistrations({
  application_services,
}: Pick<Config, 'application_services'>): Promise<Registration[]> {
  const { registrations: paths } = application_services
  if (paths.length === 0) return []
  const files = await readRegistrationFiles(paths).catch((error: Error) => {
    throw new RegistrationError([{ origin: 'application_services.registrations', message: error.message }])
  })
  const engine = files.length === 0 ? undefined : await loadEngine()
  const read = files.map(({ path, text }) => ({ path, ...withModule(path, readRegistration(path, text, engine)) }))
  const good = read.flatMap(({ path, registration }) => (registration ? [{ path, registration }] : []))
  const problems = [...read.flatMap((one) => one.problems), ...conflictsOf(good)]
  if (files.length > MAX_APPSERVICES) {
    problems.push({ origin: paths[0]!, message: `there are more than ${MAX_APPSERVICES} registrations` })
  }
  if (problems.length > 0) throw new RegistrationError(problems)
  return good.map(({ registration }) => registration)
}

function withModule(path: string, read: ReadRegistration): ReadRegistration {
  const { registration } = read
  if (registration?.hosted === undefined) return read
  return { ...read, registration: { ...registration, hosted: resolve(dirname(path), registration.hosted) } }
}

/** The module is large, and only servers with application services need it. */
async function loadEngine(): Promise<Engine> {
  return (await import('re2js')).RE2JS
}
