import type { Config } from '../../../config/schema.ts'
import { findStaleDevices } from '../../../store/accounts/devices.ts'
import { dayBefore, noteServerDay } from '../../../store/accounts/server-days.ts'
import type { Database } from '../../../store/db/db.ts'
import type { Audit } from '../../admin/audit.ts'
import type { Clock } from '../../clock.ts'
import type { Devices } from '../devices.ts'
import type { Sessions } from '../sessions.ts'

/**
 * Removes devices that nobody has used for `sessions.remove_devices_after_days`, and notes that in the record of acts. Days on which the
 * server did not run do not count, nor those before it began to note on which it ran.
 */
export interface StaleDevices {
  /** Once a day. @param isOver asked between users */
  removeAll(isOver: () => boolean): Promise<void>
}

const DAY_MS = 24 * 3_600_000
const USERS_AT_ONCE = 500
/** More than anybody configures. */
const DAYS_KEPT = 10_000

export function createStaleDevices(deps: {
  readonly config: Pick<Config, 'sessions'>
  readonly db: Database
  readonly clock: Clock
  readonly sessions: Pick<Sessions, 'flush'>
  readonly devices: Pick<Devices, 'removeUnused'>
  readonly audit: Pick<Audit, 'record'>
}): StaleDevices {
  const { db, clock, sessions, devices, audit } = deps
  const days = deps.config.sessions.remove_devices_after_days
  let doneOn = Number.NEGATIVE_INFINITY

  async function removeBefore(unusedSince: number, isOver: () => boolean): Promise<void> {
    for (let found = USERS_AT_ONCE; found === USERS_AT_ONCE; ) {
      const users = await findStaleDevices({ query: db.scan }, unusedSince, USERS_AT_ONCE)
      found = users.length
      for (const { user_nid: nid, user_id: user, device_ids: ids } of users) {
        if (isOver()) return
        // Who has just come back is not written yet, or was not when these were found.
        await sessions.flush()
        const act = { actor: 'server', act: 'remove devices that nobody uses', target: [user, ...ids].join(' ') }
        await audit.record(act, () => devices.removeUnused(nid, ids, unusedSince))
      }
    }
  }

  return {
    async removeAll(isOver) {
      const today = Math.floor(clock.now() / DAY_MS)
      if (today <= doneOn) return
      await db.tx((tx) => noteServerDay(tx, today, DAYS_KEPT))
      const since = days === 0 ? undefined : await dayBefore(db, today, days)
      if (since !== undefined) await removeBefore(since * DAY_MS, isOver)
      if (!isOver()) doneOn = today
    },
  }
}
