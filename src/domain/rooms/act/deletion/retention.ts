import type { Logger } from 'pino'
import type { Database } from '../../../../store/db/db.ts'
import { openPurges } from '../../../../store/rooms/history-purges.ts'
import {
  arrivedBy,
  firstKept,
  lastMessage,
  markArrivals,
  type SurveyedRoom,
  surveyRooms,
} from '../../../../store/rooms/retention.ts'
import type { Clock } from '../../../clock.ts'
import {
  ARRIVAL_MARKS_KEPT_MS,
  MAX_PURGES_BY_AGE,
  RETENTION_ROUND_MS,
  ROOMS_SURVEYED_AT_ONCE,
} from '../../../limits/retention.ts'
import { restAfterWork } from '../../../spare-time.ts'
import type { RoomRegistry } from '../../room/registry.ts'
import type { Lifetimes } from '../../room/retention/lifetimes.ts'
import type { HistoryPurges } from './history-purges.ts'

/**
 * Finds the messages whose time is over, and has them removed. It goes through all rooms by their numbers, a few at a time and once an hour,
 * and loads only rooms that have such messages.
 *
 * Of an event's time its sender says what they like. So a message is also over when it came in before the end of its time: no room keeps
 * the messages after one from the far future for ever.
 */
export interface RetentionRounds {
  /** Continues the round, or begins the next one if it is time. @param isOver asked between steps */
  run(isOver: () => boolean): Promise<void>
}

export function createRetentionRounds(parts: {
  readonly db: Database
  readonly clock: Clock
  readonly log: Logger
  readonly registry: Pick<RoomRegistry, 'getByNid'>
  readonly lifetimes: Lifetimes
  readonly purges: Pick<HistoryPurges, 'expire'>
}): RetentionRounds {
  const { db, clock, log, registry, lifetimes, purges } = parts
  /** The last room of this round, and when it began. */
  let reached = 0
  let begunAt = Number.NEGATIVE_INFINITY

  async function end(lifetime: number): Promise<{ readonly ts: number; readonly nid: number }> {
    const ts = clock.now() - lifetime
    return { ts, nid: await arrivedBy(db, ts) }
  }

  /** Whether rooms may have messages whose time is over, without a look at what they say. */
  async function candidatesNow(): Promise<(room: SurveyedRoom) => boolean> {
    const { byDefault, shortest } = lifetimes.bounds
    const soonest = await end(shortest)
    const usual = byDefault === undefined ? undefined : await end(Math.max(byDefault, shortest))
    return ({ says_itself, oldest_ts: ts, oldest_nid: nid }) => {
      const over = says_itself ? soonest : usual
      return over !== undefined && ts !== null && nid !== null && (ts <= over.ts || nid <= over.nid)
    }
  }

  async function expire(roomNid: number): Promise<void> {
    const room = await registry.getByNid(roomNid)
    const lifetime = await lifetimes.of(room)
    if (lifetime === undefined || room.partialState) return
    const over = await end(lifetime)
    const after = Math.max(room.purgedTo, Number.MIN_SAFE_INTEGER)
    const kept = await firstKept(db.bulk, room.nid, { after, ...over, upToTs: Number.MAX_SAFE_INTEGER })
    const below = Math.min(kept ?? Number.POSITIVE_INFINITY, room.committed.pos)
    const last = await lastMessage(db.bulk, room.nid, { after, below })
    if (last) await purges.expire(room, { pos: last.room_pos, nid: over.nid })
  }

  return {
    async run(isOver) {
      const now = clock.now()
      if (reached === 0) {
        if (now < begunAt + RETENTION_ROUND_MS) return
        begunAt = now
        await db.tx((tx) => markArrivals(tx, now, now - ARRIVAL_MARKS_KEPT_MS))
      }
      while (!isOver()) {
        if ((await openPurges(db)).length >= MAX_PURGES_BY_AGE) return
        const begun = performance.now()
        const rooms = await surveyRooms(db.bulk, reached, ROOMS_SURVEYED_AT_ONCE)
        const isCandidate = await candidatesNow()
        for (const { room_nid } of rooms.filter(isCandidate)) {
          if (isOver()) return
          await expire(room_nid).catch((err) => log.warn({ err, room: room_nid }, 'a room keeps what is over'))
        }
        if (isOver()) return
        reached = rooms.at(-1)?.room_nid ?? 0
        if (rooms.length < ROOMS_SURVEYED_AT_ONCE) {
          reached = 0
          return
        }
        await restAfterWork(performance.now() - begun, NEVER)
      }
    },
  }
}

/** The rests are short: whoever stops the server waits for one at most. */
const NEVER = new AbortController().signal
