import type { Config } from '../../../config/schema.ts'
import { findStaleDevices } from '../../../store/accounts/devices.ts'
import type { Database } from '../../../store/db/db.ts'
import type { Audit } from '../../admin/audit.ts'
import type { Clock } from '../../clock.ts'
import type { Devices } from '../devices.ts'

/** Removes devices that nobody has used for `sessions.remove_devices_after_days`, and notes that in the record of acts. */
export interface StaleDevices {
  /** Once a day. @param isOver asked between users */
  removeAll(isOver: () => boolean): Promise<void>
}

const DAY_MS = 24 * 3_600_000
const USERS_AT_ONCE = 500

export function createStaleDevices(deps: {
  readonly config: Pick<Config, 'sessions'>
  readonly db: Database
  readonly clock: Clock
  readonly devices: Pick<Devices, 'remove'>
  readonly audit: Pick<Audit, 'record'>
}): StaleDevices {
  const { db, clock, devices, audit } = deps
  const days = deps.config.sessions.remove_devices_after_days
  let doneAt = Number.NEGATIVE_INFINITY

  return {
    async removeAll(isOver) {
      const now = clock.now()
      if (days === 0 || now < doneAt + DAY_MS) return
      for (let found = USERS_AT_ONCE; found === USERS_AT_ONCE; ) {
        const users = await findStaleDevices({ query: db.scan }, { now, unusedMs: days * DAY_MS }, USERS_AT_ONCE)
        found = users.length
        for (const { user_nid: nid, user_id: user, device_ids: ids } of users) {
          if (isOver()) return
          const act = { actor: 'server', act: 'remove devices that nobody uses', target: [user, ...ids].join(' ') }
          await audit.record(act, () => devices.remove(nid, ids))
        }
      }
      doneAt = now
    },
  }
}
