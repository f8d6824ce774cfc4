import type { JsonObject } from '../../core/json.ts'
import { countActiveUsers } from '../../store/accounts/user-survey.ts'
import type { Database } from '../../store/db/db.ts'
import { surveys } from '../../store/db/whole-tables.ts'
import { estimateRoomSizes } from '../../store/rooms/room-sizes.ts'
import { listScheduledTasks, type TaskQuery } from '../../store/rooms/scheduled-tasks.ts'
import type { Sessions } from '../accounts/sessions.ts'
import type { Clock } from '../clock.ts'

/** How much this server is used. */
export interface Statistics {
  /** The users who were active in the last thirty days, to a day. */
  monthlyActiveUsers(): Promise<number>
  /** The last count, without waiting; NaN before the first one. Reading it starts a new count, every few seconds to minutes by how long one takes. */
  latestMonthlyActiveUsers(): number
  /** The ten largest rooms in the database. */
  roomSizes(): Promise<JsonObject[]>
  /** What operators have begun and what became of it, newest first: removals of rooms and history, redactions. */
  tasks(query: TaskQuery): Promise<JsonObject[]>
}

const MONTH_MS = 30 * 24 * 3_600_000
const ROOMS_SHOWN = 10
const EVENTS_SAMPLED = 100_000
const MAX_TASKS_SHOWN = 1_000
/** On a small server, where counting takes no time, the number is there soon after somebody came. */
const COUNTED_EVERY_MS = 5 * 60_000
const LEAST_REST_MS = 5_000
const REST_FOR_WORK = 1_000

export function createStatistics(deps: {
  readonly db: Database
  readonly clock: Clock
  readonly sessions: Pick<Sessions, 'flush'>
}): Statistics {
  const { db, clock, sessions } = deps
  let latest = Number.NaN
  let nextAt = Number.NEGATIVE_INFINITY

  /** Also counts users who were just seen. */
  async function count(): Promise<number> {
    nextAt = clock.now() + COUNTED_EVERY_MS
    // If the write fails, it is repeated later.
    await sessions.flush().catch(() => {})
    const begun = performance.now()
    latest = await countActiveUsers(surveys(db), clock.now() - MONTH_MS)
    const rest = REST_FOR_WORK * (performance.now() - begun)
    nextAt = clock.now() + Math.min(Math.max(rest, LEAST_REST_MS), COUNTED_EVERY_MS)
    return latest
  }

  return {
    monthlyActiveUsers: count,
    latestMonthlyActiveUsers() {
      // If the database is unreachable, the last count stays.
      if (clock.now() > nextAt) void count().catch(() => {})
      return latest
    },
    async roomSizes() {
      const sizes = await estimateRoomSizes(surveys(db), EVENTS_SAMPLED, ROOMS_SHOWN)
      return sizes.map((size) => ({ ...size }))
    },
    async tasks(query) {
      const tasks = await listScheduledTasks(db, query, MAX_TASKS_SHOWN)
      return tasks.map(({ done, ...task }) => ({ ...task, result: { done } }))
    },
  }
}
