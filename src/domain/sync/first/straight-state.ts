import { canonicalAliasOf, roomNameOf } from '../../../core/event/content.ts'
import { memberTexts } from '../../../core/event/member-texts.ts'
import type { UserId } from '../../../core/ids.ts'
import { forEachState, type StateMap } from '../../../core/state/trie.ts'
import type { Reader } from '../../../store/db/db.ts'
import { getStateTexts, type StateText } from '../../../store/events/state-texts.ts'
import { MAX_FIRST_SECTION_BYTES } from '../../limits/answers.ts'
import { headOf } from '../../rooms/room/client-event.ts'
import type { Room } from '../../rooms/room/room.ts'
import type { Look } from '../look.ts'
import { firstStateOf, sendersMembers, sharesSection, wishOf } from './first-sections.ts'
import type { FirstState } from './readings.ts'
import { knownReading } from './timelines.ts'
import { afterAge, type OpenEvent, openUsual, WrittenEvents } from './written-events.ts'

/** Of a room with more state, the events are loaded, as its other readers may find them in memory then. */
const MAX_STRAIGHT_STATE = 64

/** Whether it is worth waiting for the timeline of a room with the state: both may be written then. */
export function mayBeStraight(look: Look, room: Room): boolean {
  const { lazyLoadMembers } = look.request.filter.room.state
  return sharesSection(look, room) && (lazyLoadMembers || room.committed.state.size <= MAX_STRAIGHT_STATE)
}

/** A room whose timeline was written straight. */
export interface StraightRoom {
  readonly room: Room
  readonly senders: readonly UserId[]
}

/** What a first sync is to show of a room's state. */
interface Wanted extends StraightRoom {
  readonly target: StateMap
  /** The numbers of its events; with members that are loaded lazily, of those only the senders' own. */
  readonly nids: readonly number[]
  readonly senderNids: ReadonlySet<number>
}

/**
 * Writes the states that belong to timelines that were written straight, straight from their rows too, for all readers of the rooms.
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
  const found = nids.length > 0 ? await getStateTexts(reader, nids, MAX_FIRST_SECTION_BYTES) : undefined
  return wanted.filter((one) => !isWritten(look, one, found?.get(one.room.nid)))
}

function wantedOf(look: Look, { room, senders }: StraightRoom): Wanted {
  const target = room.committed.state
  const { lazyLoadMembers } = look.request.filter.room.state
  const nids: number[] = []
  forEachState(target, (keyId, nid) => {
    if (!lazyLoadMembers || room.keys.nameOf(keyId).type !== 'm.room.member') nids.push(nid)
  })
  const senderNids = sendersMembers(look, room, target, senders)
  for (const nid of senderNids) if (nid !== 0) nids.push(nid)
  return { room, senders, target, nids, senderNids }
}

function isWritten(
  look: Look,
  { room, target, nids, senderNids }: Wanted,
  texts: readonly StateText[] | undefined,
): boolean {
  const known = knownReading(look, room)
  // The room may have news since, or others may have written it.
  if (known?.timeline === undefined || room.committed.state !== target) return false
  if (texts?.length !== nids.length) return false
  const state = stateFrom(look, texts, { target, senderNids })
  if (state === undefined) return false
  look.sources.firstReadings.set(room.nid, { ...known, wish: wishOf(look), state })
  return true
}

/** Undefined where a text does not say all. */
function stateFrom(
  look: Look,
  texts: readonly StateText[],
  of: Pick<FirstState, 'target' | 'senderNids'>,
): FirstState | undefined {
  const events: OpenEvent[] = []
  let isNamed = false
  for (const text of texts) {
    const members = memberTexts(text.json)
    if (!members?.isPlain || !saysAll(look, text)) return undefined
    events.push(openUsual(headOf(text, members), text, AFTER_STATE))
    isNamed ||= members.stateKey === '""' && namesRoom(text.type, members.content)
  }
  const nids = texts.map(({ nid }) => nid)
  return firstStateOf({ ...of, events: new WrittenEvents(events, look.timeMs), nids, isNamed })
}

function saysAll({ sources }: Look, { nid, id, hasRelations }: StateText): boolean {
  return sources.events.saysNoMore({ event_nid: nid, event_id: id, redacted_by: null, has_relations: hasRelations })
}

/** @param json the content of an event whose state key is empty */
function namesRoom(type: string, json: string): boolean {
  if (type === 'm.room.name') return roomNameOf({ content: JSON.parse(json) }) !== undefined
  return type === 'm.room.canonical_alias' && canonicalAliasOf({ content: JSON.parse(json) }) !== undefined
}

const AFTER_STATE = afterAge('')
