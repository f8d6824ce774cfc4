import type { Logger } from 'pino'
import { ProtocolError } from '../../../../core/errors.ts'
import type { EventId, RoomId } from '../../../../core/ids.ts'
import type { JsonObject } from '../../../../core/json.ts'
import type { Database } from '../../../../store/db/db.ts'
import { newestOwnEvents } from '../../../../store/events/history-removal.ts'
import {
  deletePurge,
  endPurge,
  findPurge,
  insertPurge,
  openPurges,
  type PurgeRow,
} from '../../../../store/rooms/history-purges.ts'
import { firstKept, lastFrom } from '../../../../store/rooms/retention.ts'
import { getRooms } from '../../../../store/rooms/rooms.ts'
import type { Clock, Random } from '../../../clock.ts'
import { PURGE_TURN_MS } from '../../../limits/history-purges.ts'
import { restAfterWork } from '../../../spare-time.ts'
import type { Unread } from '../../../sync/unread.ts'
import type { EventCache } from '../../room/event-cache.ts'
import type { PushListener } from '../../room/push-signals.ts'
import type { RoomRegistry } from '../../room/registry.ts'
import type { Room } from '../../room/room.ts'
import { createPurgeSteps } from './purge-steps.ts'

/** Before what history is removed: an event, or the newest one at a time (milliseconds). */
export type PurgePoint = { readonly eventId: EventId } | { readonly ts: number }

/**
 * Removes old messages of rooms: operators begin a purge, a worker carries it out, and a restart does not stop it. State stays, because
 * newer events rest on it. The timeline begins after what was removed: nothing of it is fetched from other servers again, or counts as unread.
 */
export interface HistoryPurges {
  /**
   * @param withLocal whether messages of users of this server go too: there may be no other copy of them
   * @returns the purge's id
   * @throws ProtocolError `M_NOT_FOUND` for an unknown room or event, or when nothing is older; `M_INVALID_PARAM` for an event of another
   *   room; `M_UNKNOWN` (400) while another purge of the room is under way, or the room is being joined
   */
  begin(roomId: RoomId, point: PurgePoint, withLocal: boolean): Promise<string>
  /**
   * Removes what is over by its age: messages up to a position of the timeline, and those without a place in it that came in by an event.
   * False while another purge of the room is under way.
   */
  expire(room: Room, upTo: { readonly pos: number; readonly nid: number }): Promise<boolean>
  /** @throws ProtocolError `M_NOT_FOUND` */
  status(purgeId: string): Promise<JsonObject>
  /** Continues all purges. @param isOver asked between steps */
  runAll(isOver: () => boolean): Promise<void>
  /** Calls the listener when there is something to do. */
  onWake(listener: () => void): void
}

export interface HistoryPurgeParts {
  readonly db: Database
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly registry: RoomRegistry
  readonly events: EventCache
  readonly unread: Pick<Unread, 'forgetRoom'>
  readonly push: Pick<PushListener, 'purged'>
}

const ID_BYTES = 12

export function createHistoryPurges(parts: HistoryPurgeParts): HistoryPurges {
  const { db, clock, registry, events } = parts
  const runs = createPurgeRuns(parts)
  let wake = (): void => {}

  async function pointIn(room: Room, point: PurgePoint): Promise<{ readonly pos: number; readonly nid: number }> {
    if ('ts' in point) {
      const { ts } = point
      // What comes after something newer is newer too, whatever it says.
      const newer = { after: Number.MIN_SAFE_INTEGER, ts, upToTs: clock.now(), nid: 0 }
      const below = (await firstKept(db.bulk, room.nid, newer)) ?? Number.MAX_SAFE_INTEGER
      const row = await lastFrom(db.bulk, room.nid, { ts, below })
      if (!row) throw new ProtocolError('M_NOT_FOUND', 'The room has no event from before that time.')
      return { pos: row.room_pos, nid: row.event_nid }
    }
    const event = await events.getById(point.eventId)
    if (!event) throw new ProtocolError('M_NOT_FOUND', 'This server has no such event.')
    if (event.roomNid !== room.nid) throw new ProtocolError('M_INVALID_PARAM', 'This event is of another room.')
    if (!event.isInTimeline) throw new ProtocolError('M_INVALID_PARAM', 'This event has no place in the timeline.')
    return { pos: event.pos, nid: event.nid }
  }

  async function insert(room: Room, purge: Pick<PurgeRow, 'up_to_pos' | 'up_to_nid' | 'with_local' | 'is_by_age'>) {
    const purge_id = parts.random.bytes(ID_BYTES).toString('base64url')
    const isFirst = await db.tx((tx) =>
      insertPurge(tx, { ...purge, purge_id, room_nid: room.nid, asked_at: clock.now() }),
    )
    if (!isFirst) return undefined
    // Another copy may be the true one by now.
    const current = await registry.getByNid(room.nid)
    current.purgedTo = Math.max(current.purgedTo, purge.up_to_pos)
    countAnew(parts, current)
    if (!purge.is_by_age) runs.giveWay()
    wake()
    return purge_id
  }

  return {
    async begin(roomId, point, withLocal) {
      const room = await registry.get(roomId)
      if (!room) throw new ProtocolError('M_NOT_FOUND', 'This server knows no room of that id.')
      if (room.partialState) {
        const text = 'This server is still joining this room: ask again when it knows all its members.'
        throw new ProtocolError('M_UNKNOWN', text, { status: 400 })
      }
      const { pos, nid } = await pointIn(room, point)
      const id = await insert(room, { up_to_pos: pos - 1, up_to_nid: nid, with_local: withLocal, is_by_age: false })
      if (id !== undefined) return id
      throw new ProtocolError('M_UNKNOWN', 'History of this room is being removed already.', { status: 400 })
    },
    async expire(room, { pos, nid }) {
      return (await insert(room, { up_to_pos: pos, up_to_nid: nid, with_local: true, is_by_age: true })) !== undefined
    },
    async status(purgeId) {
      const purge = purgeId.includes('\0') ? undefined : await findPurge(db, purgeId)
      if (!purge) throw new ProtocolError('M_NOT_FOUND', 'There is no such purge.')
      const status = purge.ended_at === null ? 'active' : purge.error === null ? 'complete' : 'failed'
      return { status, events_removed: purge.removed, ...(purge.error === null ? {} : { error: purge.error }) }
    },
    runAll: runs.all,
    onWake(listener) {
      wake = listener
    },
  }
}

/** What is gone counts for nobody any more: also not on phones. */
function countAnew({ unread, push }: Pick<HistoryPurgeParts, 'unread' | 'push'>, room: Room): void {
  unread.forgetRoom(room.nid)
  push.purged(room)
}

/** Carries purges out. */
function createPurgeRuns(parts: HistoryPurgeParts) {
  const { db, clock, registry, events, log } = parts
  const { step, tidy } = createPurgeSteps(parts)
  /** An operator has asked since the last look for purges. */
  let isAsked = false

  /**
   * Ends a purge whose room is gone or going. What fails otherwise is tried again, and keeps no other purge waiting.
   * @returns false if it was over before the end
   */
  async function runOrEnd(purge: PurgeRow, isOver: () => boolean): Promise<boolean> {
    try {
      return await run(purge, isOver)
    } catch (err) {
      const { purge_id: id, room_nid: room } = purge
      if ((await getRooms(db, [room])).length > 0) {
        log.warn({ err, room, purge: id }, 'history of a room could not be removed; it will be tried again')
        return true
      }
      await db.tx((tx) => endPurge(tx, id, clock.now(), 'The room itself was removed.'))
      return true
    }
  }

  /** Goes through all purges once. By age they have a turn each, which ends when an operator asks. @returns whether there is more to do at once */
  async function runTurns(isOver: () => boolean): Promise<boolean> {
    isAsked = false
    let isMore = false
    for (const purge of await openPurges(db)) {
      let until: number | undefined
      const isTurnOver = () => {
        // From its first step on, so that each turn has one.
        until ??= performance.now() + PURGE_TURN_MS
        return isOver() || (purge.is_by_age && (isAsked || performance.now() > until))
      }
      if (isOver() || (purge.is_by_age && isAsked)) return !isOver()
      if (!(await runOrEnd(purge, isTurnOver))) isMore = !isOver()
    }
    return isMore
  }

  async function run(purge: PurgeRow, isOver: () => boolean): Promise<boolean> {
    const room = await registry.getByNid(purge.room_nid)
    const own = new Set(await newestOwnEvents(db, room.nid, purge.up_to_pos))
    for (let at: PurgeRow = purge; ; ) {
      if (isOver()) return false
      const begun = performance.now()
      const done_pos = await step(at, room, own)
      if (done_pos === undefined) break
      at = { ...at, done_pos }
      // An operator waits for theirs; nobody waits for what is over by its age.
      if (purge.is_by_age) await restAfterWork(performance.now() - begun, NEVER)
    }
    await tidy(purge, isOver)
    if (isOver()) return false
    // What is bundled with the events that stay. By its age, an event goes before what relates to it.
    if (!purge.is_by_age) events.forgetAll()
    // The copy of the beginning may not be the true one any more.
    const current = await registry.getByNid(room.nid)
    countAnew(parts, current)
    registry.drop(current)
    const { purge_id: id } = purge
    await db.tx((tx) => (purge.is_by_age ? deletePurge(tx, id) : endPurge(tx, id, clock.now(), undefined)))
    if (!purge.is_by_age) log.info({ room: room.id, purge: id }, 'history of a room was removed')
    return true
  }

  return {
    async all(isOver: () => boolean): Promise<void> {
      while (await runTurns(isOver));
    },
    /** What is going on by age ends its turn. */
    giveWay(): void {
      isAsked = true
    },
  }
}

/** The rests are short: whoever stops the server waits for one at most. */
const NEVER = new AbortController().signal
