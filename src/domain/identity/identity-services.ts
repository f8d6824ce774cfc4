import type { Config } from '../../config/schema.ts'
import type { Database } from '../../store/db.ts'
import type { Clock, Random } from '../clock.ts'

/** The services of the identity role, as endpoints know them. */
export type IdentityServices = Readonly<Record<never, never>>

/** Wires the services of the identity role. */
export function createIdentityServices(_deps: {
  readonly config: Config
  readonly db: Database
  readonly clock: Clock
  readonly random: Random
}): IdentityServices {
  return {}
}
