import { canonicalAliasOf, roomNameOf } from '../../../core/event/content.ts'
import type { UserId } from '../../../core/ids.ts'
import { isObject } from '../../../core/json.ts'
import { forEachState, type StateMap } from '../../../core/state/trie.ts'
import type { Reader } from '../../../store/db/db.ts'
import { AFTER_AGE_OF_STATE } from '../../../store/events/client-texts.ts'
import { getStateTexts, type StateText } from '../../../store/events/state-texts.ts'
import { MAX_FIRST_SECTION_BYTES } from '../../limits/answers.ts'
import type { Room } from '../../rooms/room/room.ts'
import type { Look } from '../look.ts'
import { firstStateOf, sendersMembers, sharesSection, wishOf } from './first-sections.ts'
import { knownReading } from './timelines.ts'
import { WrittenEvents } from './written-events.ts'

/** Of a room with more state, the events are loaded, as its other readers may find them in memory then. */
const MAX_STRAIGHT_STATE = 64

/** Whether it is worth waiting for the timeline of a room with the state: both may be written then. */
export function mayBeStraight(look: Look, room: Room): boolean {
  const { lazyLoadMembers } = look.request.filter.room.state
  return sharesSection(look, room) && (lazyLoadMembers || room.committed.state.size <= MAX_STRAIGHT_STATE)
}

/** A room whose timeline the database wrote. */
export interface StraightRoom {
  readonly room: Room
  readonly senders: readonly UserId[]
}

/** What a first sync is to show of a room's state. */
interface Wanted extends StraightRoom {
  readonly target: StateMap
  /** The numbers of its events; with members that are loaded lazily, of those only the senders' own. */
  readonly nids: readonly number[]
  readonly members: ReadonlyMap<UserId, number>
}

/**
 * Keeps the states that belong to timelines that the database wrote, as it writes them too, for all readers of the rooms.
 *
 * @returns those rooms of which that cannot be done: their states have to be loaded
 */
export async function writeStraightStates(
  look: Look,
  rooms: readonly StraightRoom[],
  reader: Reader,
): Promise<StraightRoom[]> {
  const wanted = rooms.map((room) => wantedOf(look, room))
  const few = wanted.filter(({ nids }) => nids.length <= MAX_STRAIGHT_STATE)
  const nids = few.flatMap((room) => room.nids)
  const found = nids.length > 0 ? await getStateTexts(reader, nids, MAX_FIRST_SECTION_BYTES, look.timeMs) : undefined
  return wanted.filter((one) => !isWritten(look, one, found?.get(one.room.nid)))
}

function wantedOf(look: Look, { room, senders }: StraightRoom): Wanted {
  const target = room.committed.state
  const { lazyLoadMembers } = look.request.filter.room.state
  const nids: number[] = []
  forEachState(target, (keyId, nid) => {
    if (!lazyLoadMembers || room.keys.nameOf(keyId).type !== 'm.room.member') nids.push(nid)
  })
  const members = sendersMembers(look, room, target, senders)
  nids.push(...members.values())
  return { room, senders, target, nids, members }
}

function isWritten(look: Look, { room, target, nids, members }: Wanted, text: StateText | undefined): boolean {
  const known = knownReading(look, room)
  // The room may have news since, or others may have written it.
  if (known?.timeline === undefined || room.committed.state !== target) return false
  if (text?.events.length !== nids.length || !saysAll(look, text)) return false
  const state = firstStateOf({
    target,
    senders: members,
    events: WrittenEvents.ofText(text.json, text.events, AFTER_AGE_OF_STATE, look.timeMs),
    isNamed: text.names.some(namesRoom),
  })
  look.sources.firstReadings.set(room.nid, { ...known, wish: wishOf(look), state, opening: undefined })
  return true
}

function saysAll({ sources }: Look, { events }: StateText): boolean {
  return events.every((event) =>
    sources.events.saysNoMore({ event_nid: event[0], event_id: event[4], redacted_by: null, has_relations: event[7] }),
  )
}

function namesRoom([type, content]: StateText['names'][number]): boolean {
  if (!isObject(content)) return false
  return (type === 'm.room.name' ? roomNameOf({ content }) : canonicalAliasOf({ content })) !== undefined
}
