import type { Config } from '../config/schema.ts'
import type { Clock } from './clock.ts'

/** Everything that endpoints call, one property per service; made in context.ts. */
export interface Services {
  readonly config: Config
  readonly clock: Clock
}
