import { hash } from 'node:crypto'
import type { Config } from '../../config/schema.ts'
import { ProtocolError } from '../../core/errors.ts'
import type { Clock } from '../clock.ts'
import { BRAKE_FACTOR, MAX_LOGIN_COUNTERS } from '../limits.ts'
import { createSpending } from '../spending.ts'

/**
 * Counts wrong passwords: for each account and address, and for each account in all. Nobody can use up the attempts that the owner has at
 * their usual addresses, and an attack from many addresses is slowed down too.
 */
export interface LoginBrake {
  /**
   * Call this before a password is checked. Returns a function to call if it was right: only wrong ones count.
   *
   * @param account the name of the account, whether it exists or not
   * @param place the address, or the session, that the attempt comes from
   * @param isKnown whether a session of the account was there. Called only if there were too many wrong ones from elsewhere
   * @throws ProtocolError `M_LIMIT_EXCEEDED`
   */
  begin(account: string, place: string, isKnown: () => Promise<boolean>): Promise<() => void>
  /** How many attempts were refused since the start. */
  refusals(): number
}

export function createLoginBrake(deps: {
  readonly config: Pick<Config, 'rate_limits'>
  readonly clock: Clock
}): LoginBrake {
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
      const { enabled, login } = deps.config.rate_limits
      if (!enabled) return () => {}
      const ofPlace = { burst: login.burst, perSecond: login.per_second }
      const ofAccount = { burst: login.burst * BRAKE_FACTOR, perSecond: login.per_second }
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

/** A key of fixed length, however long the text is. */
function shortOf(text: string): string {
  return hash('sha256', text, 'base64').slice(0, 22)
}
