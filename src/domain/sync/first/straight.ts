import { memberTexts } from '../../../core/event/member-texts.ts'
import type { UserId } from '../../../core/ids.ts'
import type { EventRow } from '../../../store/events/events.ts'
import { MAX_FIRST_SECTION_BYTES } from '../../limits/answers.ts'
import { headOf } from '../../rooms/room/client-event.ts'
import type { Room } from '../../rooms/room/room.ts'
import type { Look } from '../look.ts'
import { limitOf } from '../shown-timeline.ts'
import { isNewer } from '../token.ts'
import { sharesSection } from './first-sections.ts'
import type { WrittenTimeline } from './readings.ts'
import { readNow } from './timelines.ts'
import { afterAge, type OpenEvent, openUsual, WrittenEvents } from './written-events.ts'

/**
 * Writes a room's timeline straight from its rows, and keeps it for its readers, if these are usual messages to which nothing relates, and
 * the newest of the room. Most rooms of an account that begins are like that, and an object for each event takes longer than all of its text.
 *
 * @param rows newest first
 * @returns who sent the events; undefined where somebody may see more or something else in one of them
 */
export function writeStraight(look: Look, room: Room, rows: readonly EventRow[]): readonly UserId[] | undefined {
  const timeline = sharesSection(look, room) ? timelineFrom(look, room, rows) : undefined
  if (timeline === undefined) return undefined
  look.sources.firstReadings.set(room.nid, { ...readNow(look, room), timeline, wish: undefined, state: undefined })
  return timeline.senders
}

function timelineFrom(look: Look, room: Room, rows: readonly EventRow[]): WrittenTimeline | undefined {
  const { committed, localMembers } = room
  const [newest, oldest] = [rows[0], rows.at(-1)]
  if (newest === undefined || oldest === undefined || rows.length !== limitOf(look)) return undefined
  if (newest.room_pos !== committed.pos || oldest.room_pos !== committed.pos - rows.length + 1) return undefined
  if (oldest.event_nid < (localMembers.get(look.by.userNid)?.since ?? Number.POSITIVE_INFINITY)) return undefined
  if (oldest.room_pos <= Math.max(1, room.purgedTo) || room.partialState || isNewer(committed.nid, look.now.events))
    return undefined
  const senders = new Map<number, UserId>()
  const events: OpenEvent[] = []
  let bytes = 0
  for (let index = rows.length - 1; index >= 0; index--) {
    const row = rows[index]!
    if (!isUsualMessage(row, room) || !look.sources.events.saysNoMore(row)) return undefined
    const members = memberTexts(row.json)
    if (!members?.isPlain) return undefined
    bytes += row.json.length
    const { sender_nid: senderNid } = row
    if (!senders.has(senderNid))
      senders.set(senderNid, localMembers.get(senderNid)?.userId ?? JSON.parse(members.sender))
    const { origin_server_ts: ts, txn_token: txnToken, txn_id: txnId } = row
    const head = headOf({ id: row.event_id, type: row.type }, members)
    events.push(openUsual(head, { ts, senderNid, txnToken, txnId }, AFTER_MESSAGE))
  }
  if (bytes > MAX_FIRST_SECTION_BYTES) return undefined
  return {
    events: new WrittenEvents(events, look.timeMs),
    limited: true,
    before: oldest.room_pos - 1,
    oldest: oldest.event_nid,
    threads: [],
    senders: [...senders.values()],
    isStill: true,
  }
}

function isUsualMessage(row: EventRow, { committed }: Room): boolean {
  return (
    row.key_id === null &&
    row.redacted_by === null &&
    row.standing === null &&
    !row.has_relations &&
    row.type !== 'm.room.redaction' &&
    row.stream_pos === null &&
    row.state_chain === committed.chain &&
    row.state_seq === committed.seq &&
    row.current_chain === null
  )
}

const AFTER_MESSAGE = afterAge(',"membership":"join"')
