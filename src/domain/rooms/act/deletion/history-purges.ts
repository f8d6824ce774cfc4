import type { Logger } from 'pino'
import { ProtocolError } from '../../../../core/errors.ts'
import type { Pdu } from '../../../../core/event/format.ts'
import { redact } from '../../../../core/event/redact.ts'
import type { EventId, RoomId } from '../../../../core/ids.ts'
import type { JsonObject } from '../../../../core/json.ts'
import { parseExact } from '../../../../core/large-integers.ts'
import { encodeCanonical } from '../../../../core/signing/canonical-json.ts'
import type { Database } from '../../../../store/db/db.ts'
import { nearestEvents } from '../../../../store/events/events.ts'
import {
  emptyEvents,
  newestOwnEvents,
  type OldEvent,
  oldEvents,
  recountThreads,
  removeEvents,
  removeExcluded,
  removeRelations,
} from '../../../../store/events/history-removal.ts'
import {
  endPurge,
  findPurge,
  insertPurge,
  notePurged,
  openPurges,
  type PurgeRow,
} from '../../../../store/rooms/history-purges.ts'
import type { Clock, Random } from '../../../clock.ts'
import { EVENTS_PURGED_AT_ONCE } from '../../../limits/history-purges.ts'
import type { Unread } from '../../../sync/unread.ts'
import type { EventCache } from '../../room/event-cache.ts'
import type { RoomRegistry } from '../../room/registry.ts'
import type { Room } from '../../room/room.ts'
import { TRANSACTION_IDS_KEPT_MS } from './purge.ts'

/** Before what history is removed: an event, or the newest one at a time (milliseconds). */
export type PurgePoint = { readonly eventId: EventId } | { readonly ts: number }

/**
 * Removes old messages of rooms: operators begin a purge, a worker carries it out, and a restart does not stop it. State stays, because
 * newer events rest on it. The timeline begins after what was removed; nothing of it is fetched from other servers again.
 */
export interface HistoryPurges {
  /**
   * @param withLocal whether messages of users of this server go too: there may be no other copy of them
   * @returns the purge's id
   * @throws ProtocolError `M_NOT_FOUND` for an unknown room or event, or when nothing is older; `M_INVALID_PARAM` for an event of another
   *   room; `M_UNKNOWN` (400) while another purge of the room is under way
   */
  begin(roomId: RoomId, point: PurgePoint, withLocal: boolean): Promise<string>
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
  readonly unread: Pick<Unread, 'forgetAll'>
}

const ID_BYTES = 12

export function createHistoryPurges(parts: HistoryPurgeParts): HistoryPurges {
  const { db, clock, registry, events, log } = parts
  let wake = (): void => {}

  async function pointIn(room: Room, point: PurgePoint): Promise<{ readonly pos: number; readonly nid: number }> {
    if ('ts' in point) {
      const [row] = await nearestEvents(db, room.nid, point.ts, 'b', 1)
      if (row?.room_pos == null) throw new ProtocolError('M_NOT_FOUND', 'The room has no event from before that time.')
      return { pos: row.room_pos, nid: row.event_nid }
    }
    const event = await events.getById(point.eventId)
    if (!event) throw new ProtocolError('M_NOT_FOUND', 'This server has no such event.')
    if (event.roomNid !== room.nid) throw new ProtocolError('M_INVALID_PARAM', 'This event is of another room.')
    if (!event.isInTimeline) throw new ProtocolError('M_INVALID_PARAM', 'This event has no place in the timeline.')
    return { pos: event.pos, nid: event.nid }
  }

  /** Removes the next part of a timeline. Gives the position up to which it is done; undefined at the end. */
  async function step(purge: PurgeRow, room: Room, own: ReadonlySet<number>): Promise<number | undefined> {
    const part = { after: purge.done_pos, upTo: purge.up_to_pos, limit: EVENTS_PURGED_AT_ONCE }
    return db.tx(async (tx) => {
      const found = await oldEvents(tx, room.nid, part)
      const donePos = found.at(-1)?.room_pos
      if (donePos === undefined) return undefined
      const going = found.filter(({ is_needed, is_local }) => !is_needed && (purge.with_local || !is_local))
      const isMark = ({ event_nid, is_marked }: OldEvent) => is_marked || own.has(event_nid)
      const gone = going.filter((event) => !isMark(event))
      await removeEvents(
        tx,
        room.nid,
        gone.map(({ event_nid }) => event_nid),
        clock.now() - TRANSACTION_IDS_KEPT_MS,
      )
      await emptyEvents(
        tx,
        room.nid,
        going.filter(isMark).map(({ event_nid, json }) => ({ event_nid, json: emptied(room, json) })),
      )
      await notePurged(tx, purge.purge_id, { donePos, removed: going.length })
      return donePos
    })
  }

  /** Removes what has no place in the timeline, and what related to removed events. */
  async function tidy(purge: PurgeRow, isOver: () => boolean): Promise<void> {
    const { purge_id: id, room_nid: nid, up_to_pos: upTo, up_to_nid: below, with_local: withLocal } = purge
    const limit = EVENTS_PURGED_AT_ONCE
    for (let removed = 1; removed > 0 && !isOver(); ) {
      removed = await db.tx(async (tx) => {
        const rows = await removeExcluded(tx, nid, { below, withLocal, limit })
        await notePurged(tx, id, { donePos: null, removed: rows })
        return rows
      })
    }
    for (let removed = 1; removed > 0 && !isOver(); ) {
      removed = await db.tx((tx) => removeRelations(tx, nid, upTo, limit))
    }
    if (!isOver()) await db.tx((tx) => recountThreads(tx, nid))
  }

  async function run(purge: PurgeRow, isOver: () => boolean): Promise<void> {
    const room = await registry.getByNid(purge.room_nid)
    const own = new Set(await newestOwnEvents(db, room.nid, purge.up_to_pos))
    for (let at: PurgeRow = purge; ; ) {
      if (isOver()) return
      const done_pos = await step(at, room, own)
      if (done_pos === undefined) break
      at = { ...at, done_pos }
    }
    await tidy(purge, isOver)
    if (isOver()) return
    events.forgetAll()
    parts.unread.forgetAll()
    registry.drop(await registry.getByNid(room.nid))
    await db.tx((tx) => endPurge(tx, purge.purge_id, clock.now(), undefined))
    log.info({ room: room.id, purge: purge.purge_id }, 'history of a room was removed')
  }

  return {
    async begin(roomId, point, withLocal) {
      const room = await registry.get(roomId)
      if (!room) throw new ProtocolError('M_NOT_FOUND', 'This server knows no room of that id.')
      const { pos, nid } = await pointIn(room, point)
      const purge_id = parts.random.bytes(ID_BYTES).toString('base64url')
      const place = { room_nid: room.nid, up_to_pos: pos - 1, up_to_nid: nid }
      const purge = { purge_id, ...place, with_local: withLocal, asked_at: clock.now() }
      if (!(await db.tx((tx) => insertPurge(tx, purge)))) {
        throw new ProtocolError('M_UNKNOWN', 'History of this room is being removed already.', { status: 400 })
      }
      room.purgedTo = Math.max(room.purgedTo, pos - 1)
      wake()
      return purge_id
    },
    async status(purgeId) {
      const purge = purgeId.includes('\0') ? undefined : await findPurge(db, purgeId)
      if (!purge) throw new ProtocolError('M_NOT_FOUND', 'There is no such purge.')
      const status = purge.ended_at === null ? 'active' : purge.error === null ? 'complete' : 'failed'
      return { status, events_removed: purge.removed, ...(purge.error === null ? {} : { error: purge.error }) }
    },
    async runAll(isOver) {
      for (const purge of await openPurges(db)) if (!isOver()) await run(purge, isOver)
    },
    onWake(listener) {
      wake = listener
    },
  }
}

/** What a redaction leaves of an event. */
function emptied({ version }: Room, json: string): string {
  // These bytes are our own: they were checked before they were stored.
  return encodeCanonical(redact(version, parseExact(json) as Pdu))
}
