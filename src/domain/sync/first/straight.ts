import type { UserId } from '../../../core/ids.ts'
import { AFTER_AGE_OF_MESSAGE } from '../../../store/events/client-texts.ts'
import type { TimelineText } from '../../../store/events/recent-timelines.ts'
import { MAX_FIRST_SECTION_BYTES } from '../../limits/answers.ts'
import type { Room } from '../../rooms/room/room.ts'
import type { Look } from '../look.ts'
import { limitOf } from '../shown-timeline.ts'
import { isNewer } from '../token.ts'
import { sharesSection } from './first-sections.ts'
import type { WrittenTimeline } from './readings.ts'
import { readNow } from './timelines.ts'
import { WrittenEvents } from './written-events.ts'

/**
 * Keeps a timeline that the database wrote for the room's readers, if it has the newest events of the room, and nothing relates to them. Most
 * rooms of an account that begins are like that, and an object for each event takes longer than all of its text.
 *
 * @returns who sent the events; undefined where somebody may see more or something else in one of them
 */
export function keepStraight(look: Look, room: Room, text: TimelineText): readonly UserId[] | undefined {
  const timeline = sharesSection(look, room) ? timelineOf(look, room, text) : undefined
  if (timeline === undefined) return undefined
  look.sources.firstReadings.set(room.nid, { ...readNow(look, room), timeline, wish: undefined, state: undefined })
  return timeline.senders
}

function timelineOf(look: Look, room: Room, { json, events }: TimelineText): WrittenTimeline | undefined {
  const { committed, localMembers } = room
  const [oldest, newest] = [events[0], events.at(-1)]
  if (newest === undefined || oldest === undefined || events.length !== limitOf(look)) return undefined
  const [first, from, last] = [oldest[0], oldest[7], newest[7]]
  if (last !== committed.pos || from !== committed.pos - events.length + 1) return undefined
  if (first < (localMembers.get(look.by.userNid)?.since ?? Number.POSITIVE_INFINITY)) return undefined
  if (from <= Math.max(1, room.purgedTo) || room.partialState || isNewer(committed.nid, look.now.events))
    return undefined
  if (json.length > MAX_FIRST_SECTION_BYTES) return undefined
  const senders = new Set<UserId>()
  for (let index = 0; index < events.length; index++) {
    // By their places: to take an array apart takes long in code that runs for the first time.
    const event = events[index]!
    if (event[8] !== committed.chain || event[9] !== committed.seq) return undefined
    const says = { event_nid: event[0], event_id: event[4], redacted_by: null, has_relations: false }
    if (!look.sources.events.saysNoMore(says)) return undefined
    senders.add(event[10])
  }
  return {
    events: WrittenEvents.ofText(json, events, AFTER_AGE_OF_MESSAGE, look.timeMs),
    limited: true,
    before: from - 1,
    oldest: first,
    threads: [],
    senders: [...senders],
    isStill: true,
  }
}
