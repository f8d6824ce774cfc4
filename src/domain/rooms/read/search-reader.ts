import { setImmediate as othersTurn } from 'node:timers/promises'
import { displayNameOf } from '../../../core/event/content.ts'
import type { EventId, UserId } from '../../../core/ids.ts'
import type { JsonObject } from '../../../core/json.ts'
import { JsonBytes } from '../../../core/json-bytes.ts'
import type { Reader } from '../../../store/db/db.ts'
import type { Requester } from '../../accounts/requester.ts'
import { MAX_EVENT_PAGE_BYTES } from '../../limits/answers.ts'
import { MAX_ANSWER_PART_BYTES } from '../../limits.ts'
import { writeClientEvent } from '../room/client-event.ts'
import type { EventCache } from '../room/event-cache.ts'
import { keysAt, stateAt, stateNids } from '../room/past-state.ts'
import { encodePosition } from '../room/position-token.ts'
import type { Room } from '../room/room.ts'
import type { RoomAccess } from '../room/room-access.ts'
import type { RoomEvent } from '../room/room-event.ts'
import { writeEventList } from './event-lists.ts'
import type { FullReading } from './full-reading.ts'
import { type FindHits, type Hit, type SearchWish, searchedWords } from './search-hits.ts'
import { decodeSearchToken, encodeSearchToken, type SearchToken } from './search-token.ts'
import { BEGINNING, type Direction, type PageBudget, type Timeline } from './timeline.ts'

/** Searches what a user may see of the rooms that they are or were in (client-server API, "Server Side Search"). */
export interface SearchReader {
  /** The answer's `room_events`. @throws ProtocolError `M_INVALID_PARAM` for a text that is no token */
  search(by: Requester, wish: SearchWish): Promise<JsonBytes>
}

export function createSearchReader(parts: {
  readonly db: Reader
  readonly events: EventCache
  readonly access: RoomAccess
  readonly findHits: FindHits
  readonly timeline: Timeline
  readonly fullReading: FullReading
}): SearchReader {
  const { db, events, access, findHits, timeline, fullReading } = parts

  async function around(
    by: Requester,
    { room, event }: Hit,
    context: NonNullable<SearchWish['context']>,
    budget: PageBudget,
  ) {
    const { departure } = await access.mustReadTimeline(by, room.id)
    const upTo = departure?.pos ?? room.committed.pos
    const read = (direction: Direction, after: number, end: number, wished: number) => {
      const count = budget.left > 0 ? wished : 0
      return timeline.page(by, { room, direction, after, upTo: end }, count, () => true, undefined, budget)
    }
    const [before, after] = await Promise.all([
      read('b', BEGINNING, event.pos - 1, context.before),
      read('f', event.pos, Math.max(upTo, event.pos), context.after),
    ])
    const shown = [...before.events, ...after.events]
    const reading = await fullReading(by, room, shown)
    const out = new JsonBytes().text('{').key('events_before', true)
    writeEventList(out, before.events, reading)
    writeEventList(out.key('events_after'), after.events, reading)
    out.key('start').value(encodePosition(before.next ?? (before.events.at(-1) ?? event).pos - 1))
    out.key('end').value(encodePosition(after.next ?? (after.events.at(-1) ?? event).pos))
    if (context.withProfiles) out.key('profile_info').value(await profilesAt(room, event, [event, ...shown]))
    return out.text('}')
  }

  /** The names and pictures that the senders had in the room at an event. */
  async function profilesAt(room: Room, event: RoomEvent, shown: readonly RoomEvent[]): Promise<JsonObject> {
    const senders = [...new Set(shown.map(({ sender }) => sender))]
    const keyIds = senders.flatMap((sender) => room.keys.idOf('m.room.member', sender) ?? [])
    const members = await events.load(await keysAt(db, room, event.pointAfter, keyIds))
    const profiles: Record<UserId, JsonObject> = {}
    for (const member of members.values()) {
      const { avatar_url } = member.content
      const displayname = displayNameOf(member)
      profiles[member.pdu.state_key as UserId] = {
        ...(displayname !== undefined && { displayname }),
        ...(typeof avatar_url === 'string' && { avatar_url }),
      }
    }
    return profiles
  }

  async function writeResults(out: JsonBytes, by: Requester, hits: readonly Hit[], wish: SearchWish): Promise<void> {
    out.key('results').text('[')
    const budget = { left: MAX_EVENT_PAGE_BYTES }
    for (const [index, hit] of hits.entries()) {
      const { room, event, match } = hit
      out
        .text(index === 0 ? '{' : ',{')
        .key('rank', true)
        .value(match.rank / 1_000_000)
      writeClientEvent(out.key('result'), event, await fullReading(by, room, [event]))
      if (wish.context) out.key('context').append(await around(by, hit, wish.context, budget))
      out.text('}')
      // What is in memory is read without a pause.
      await othersTurn()
    }
    out.text(']')
  }

  /** The state of a room as the user may read it. Of a very large one only a part. */
  async function writeState(out: JsonBytes, by: Requester, room: Room): Promise<void> {
    const { departure } = await access.mustReadTimeline(by, room.id)
    const state = departure ? await stateAt(db, room, departure.pointAfter) : room.committed.state
    const { found } = await events.loadWithin(stateNids(state), MAX_ANSWER_PART_BYTES)
    const reading = await fullReading(by, room, found)
    writeEventList(out, found, { ...reading, membershipAt: undefined })
  }

  return {
    async search(by, wish) {
      const token = wish.from === undefined ? undefined : decodeSearchToken(wish.from)
      const { hits, count, next } = await findHits(by, wish, token)
      const out = new JsonBytes().text('{').key('count', true).value(count)
      out.key('highlights').value(searchedWords(wish.term))
      await writeResults(out, by, hits, wish)
      const within = { ...(token?.room && { room: token.room }), ...(token?.sender && { sender: token.sender }) }
      if (next) out.key('next_batch').value(encodeSearchToken({ ...next, ...within }))
      if (wish.groupBy.length > 0) out.key('groups').value(groupsOf(hits, wish.groupBy, next, within))
      if (wish.withState) {
        out.key('state').text('{')
        for (const [index, room] of [...new Set(hits.map((hit) => hit.room))].entries()) {
          out.text(`${index === 0 ? '' : ','}${JSON.stringify(room.id)}:`)
          await writeState(out, by, room)
        }
        out.text('}')
      }
      return out.text('}')
    },
  }
}

function groupsOf(
  hits: readonly Hit[],
  keys: SearchWish['groupBy'],
  next: SearchToken | undefined,
  within: SearchToken,
): JsonObject {
  const groups: Record<string, Record<string, { results: EventId[]; order: number; next_batch?: string }>> = {}
  for (const key of keys) {
    const ofKey: (typeof groups)[string] = {}
    groups[key] = ofKey
    for (const { room, event } of hits) {
      const value = key === 'room_id' ? room.id : event.sender
      const narrowed = key === 'room_id' ? { room: room.id } : { sender: event.sender }
      // From where the page ends: what is before in the group was on this page.
      const rest = next && { next_batch: encodeSearchToken({ ...next, ...within, ...narrowed }) }
      ofKey[value] ??= { results: [], order: Object.keys(ofKey).length + 1, ...rest }
      ofKey[value].results.push(event.id)
    }
  }
  return groups
}
