import { createCache } from '../../core/cache.ts'
import { findToken } from '../../store/accounts/tokens.ts'
import type { Reader } from '../../store/db/db.ts'
import { hashAccessToken, isAccessToken } from '../accounts/access-tokens.ts'
import type { Requester } from '../accounts/requester.ts'
import { requesterOf, SEEN_EVERY_MS } from '../accounts/sessions.ts'
import type { Clock } from '../clock.ts'
import { STANDBY_DEVICES_REMEMBERED } from '../limits/cluster.ts'
import { OnlyWhereServed } from './only-where-served.ts'

/** Sessions as a node that stands by finds them. */
export interface StandbySessions {
  /**
   * The user of a token; undefined for every token that this node cannot judge.
   *
   * @throws OnlyWhereServed once in a while for each device, so that the node that serves sees that it is in use
   */
  find(token: string): Promise<Requester | undefined>
}

/** Each session is looked up each time, so that none is taken for longer than it lasts. */
export function createStandbySessions({ db, clock }: { readonly db: Reader; readonly clock: Clock }): StandbySessions {
  /** When a request of a device went to the node that serves. */
  const seen = createCache<string, number>(STANDBY_DEVICES_REMEMBERED)

  function mustBeSeen(userNid: number, deviceId: string): boolean {
    const device = `${userNid} ${deviceId}`
    const now = clock.now()
    if (now - (seen.get(device) ?? Number.NEGATIVE_INFINITY) < SEEN_EVERY_MS) return false
    seen.set(device, now)
    return true
  }

  return {
    async find(token) {
      if (!isAccessToken(token)) return undefined
      const row = await findToken(db, Buffer.from(hashAccessToken(token), 'base64'))
      // The first use of a renewed token is written.
      if (row === undefined || row.renewed_by !== null) return undefined
      if (row.expires_at !== null && row.expires_at <= clock.now()) return undefined
      if (mustBeSeen(row.user_nid, row.device_id)) throw new OnlyWhereServed('the device is to be recorded as seen')
      return requesterOf(row)
    },
  }
}
