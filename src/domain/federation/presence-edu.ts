import { isUserId, serverOf } from '../../core/ids.ts'
import { isObject, type JsonValue } from '../../core/json.ts'
import type { Reader } from '../../store/db/db.ts'
import { getMemberships } from '../../store/rooms/rooms.ts'
import type { Clock } from '../clock.ts'
import { MAX_PRESENCES_PER_EDU, MAX_STATUS_CHARS } from '../limits.ts'
import type { Presence, PresenceState } from '../sync/presence.ts'
import type { Users } from '../users.ts'
import type { EduHandler } from './transaction-edus.ts'

const STATES: readonly JsonValue[] = ['online', 'unavailable', 'offline'] satisfies PresenceState[]

/** Processes presence of other servers' users. Presence of a user who shares no room with ours is kept in case that changes. */
export function createPresenceEdu(parts: {
  readonly db: Reader
  readonly clock: Clock
  readonly users: Pick<Users, 'find'>
  readonly presence: Pick<Presence, 'heard' | 'heardOfStranger'>
}): EduHandler {
  const { db, clock, users, presence } = parts
  return async (origin, { push }) => {
    if (!Array.isArray(push)) return
    for (const one of push.slice(0, MAX_PRESENCES_PER_EDU)) {
      const { user_id: userId, presence: state, status_msg: status, last_active_ago: ago } = isObject(one) ? one : {}
      if (!isUserId(userId) || serverOf(userId) !== origin || !STATES.includes(state ?? null)) continue
      const userNid = await users.find(userId)
      // Memberships of remote users in memory may be out of date.
      const rows = userNid === undefined ? [] : await getMemberships(db, userNid)
      const roomNids = new Set(rows.flatMap((row) => (row.membership === 'join' ? [row.room_nid] : [])))
      const isAgo = typeof ago === 'number' && Number.isSafeInteger(ago) && ago >= 0
      const is = {
        state: state as PresenceState,
        statusMessage: typeof status === 'string' && status.length <= MAX_STATUS_CHARS ? status : undefined,
        activeAt: clock.now() - (isAgo ? ago : 0),
      }
      if (userNid === undefined || roomNids.size === 0) presence.heardOfStranger(userId, is)
      else presence.heard({ userNid, userId, roomNids }, is)
    }
  }
}
