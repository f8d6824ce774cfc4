import { hash } from 'node:crypto'
import type { Config } from '../../config/schema.ts'
import { ProtocolError } from '../../core/errors.ts'
import type { Clock } from '../clock.ts'
import { BRAKE_FACTOR, MAX_LOGIN_COUNTERS } from '../limits.ts'
import { createSpending } from '../spending.ts'

/**
 * Counts passwords that were wrong: for each account by the address that they came from, and for each account altogether. Nobody can use up
 * what the owner has at an address of theirs, and who comes from many addresses is slowed down all the same.
 */
export interface LoginBrake {
  /**
   * To be called before a password is looked at. Gives what is to be called when it was right: only wrong ones count.
   *
   * @param account what it is called by, whether it exists or not
   * @param place the address, or the session, from which it comes
   * @param isKnown whether the account's sessions have been there; asked when too much went wrong from elsewhere
   * @throws ProtocolError `M_LIMIT_EXCEEDED`
   */
  begin(account: string, place: string, isKnown: () => Promise<boolean>): Promise<() => void>
  /** How many were refused since the start. */
  refusals(): number
}

export function createLoginBrake(deps: {
  readonly config: Pick<Config, 'rate_limits'>
  readonly clock: Clock
}): LoginBrake {
  const { enabled, login } = deps.config.rate_limits
  if (!enabled) return { begin: async () => () => {}, refusals: () => 0 }
  const ofPlace = { burst: login.burst, perSecond: login.per_second }
  const ofAccount = { burst: login.burst * BRAKE_FACTOR, perSecond: login.per_second }
  const places = createSpending({ ...deps, max: MAX_LOGIN_COUNTERS })
  const accounts = createSpending({ ...deps, max: MAX_LOGIN_COUNTERS })

  let refusals = 0

  function tooMany(waitMs: number): ProtocolError {
    refusals++
    return new ProtocolError('M_LIMIT_EXCEEDED', 'Too many logins failed. Wait a little before the next.', {
      extra: { retry_after_ms: Math.max(1, waitMs) },
    })
  }

  return {
    refusals: () => refusals,
    async begin(account, place, isKnown) {
      const name = shortOf(account)
      const here = shortOf(`${name} ${place}`)
      if (places.take(here, 1, ofPlace) === 0) throw tooMany(places.waitMs(here, 1, ofPlace))
      const taken = accounts.take(name, 1, ofAccount)
      if (taken === 0 && !(await isKnown())) throw tooMany(accounts.waitMs(name, 1, ofAccount))
      return () => {
        places.giveBack(here, 1, ofPlace)
        accounts.giveBack(name, taken, ofAccount)
      }
    },
  }
}

/** As long for whatever was sent. */
function shortOf(text: string): string {
  return hash('sha256', text, 'base64').slice(0, 22)
}
