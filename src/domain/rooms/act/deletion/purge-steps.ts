import type { Pdu } from '../../../../core/event/format.ts'
import { redact } from '../../../../core/event/redact.ts'
import { parseExact } from '../../../../core/large-integers.ts'
import { encodeCanonical } from '../../../../core/signing/canonical-json.ts'
import type { Database } from '../../../../store/db/db.ts'
import {
  emptyEvents,
  forgetThreads,
  type OldEvent,
  oldEvents,
  recountThreads,
  removeEvents,
  removeExcluded,
  removeRelations,
} from '../../../../store/events/history-removal.ts'
import { notePurged, type PurgeRow } from '../../../../store/rooms/history-purges.ts'
import type { Clock } from '../../../clock.ts'
import { EVENTS_PURGED_AT_ONCE } from '../../../limits/history-purges.ts'
import type { EventCache } from '../../room/event-cache.ts'
import type { Room } from '../../room/room.ts'
import { TRANSACTION_IDS_KEPT_MS } from './purge.ts'

export interface PurgeStepParts {
  readonly db: Database
  readonly clock: Clock
  readonly events: Pick<EventCache, 'forget'>
}

/** The parts of a purge of history, each a transaction. */
export function createPurgeSteps({ db, clock, events }: PurgeStepParts) {
  /** Removes the next part of a timeline. Gives the position up to which it is done; undefined at the end. */
  async function step(purge: PurgeRow, room: Room, own: ReadonlySet<number>): Promise<number | undefined> {
    const part = { after: purge.done_pos, upTo: purge.up_to_pos, limit: EVENTS_PURGED_AT_ONCE }
    const done = await db.tx(async (tx) => {
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
      return { donePos, nids: going.map(({ event_nid }) => event_nid) }
    })
    if (done) events.forget(done.nids)
    return done?.donePos
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
    // Two transactions: whoever answers in a thread that is forgotten must not wait for the counts of the others.
    if (!isOver()) await db.tx((tx) => forgetThreads(tx, nid))
    if (!isOver()) await db.tx((tx) => recountThreads(tx, nid))
  }

  return { step, tidy }
}

/** What a redaction leaves of an event. */
function emptied({ version }: Room, json: string): string {
  // These bytes are our own: they were checked before they were stored.
  return encodeCanonical(redact(version, parseExact(json) as Pdu))
}
