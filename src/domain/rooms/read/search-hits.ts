import type { EventMatcher } from '../../../core/filter.ts'
import { groupBy } from '../../../core/group-by.ts'
import { wordsOf } from '../../../core/search-words.ts'
import type { Database, Reader } from '../../../store/db/db.ts'
import { searches } from '../../../store/db/whole-tables.ts'
import { getAggregations } from '../../../store/events/relations.ts'
import { type FrequentSearches, findMatches, type SearchKind, type SearchMatch } from '../../../store/events/search.ts'
import type { Requester } from '../../accounts/requester.ts'
import {
  MAX_FREQUENT_SEARCH_CHARS,
  MAX_FREQUENT_SEARCHES,
  MAX_RANKED_MATCHES,
  MAX_ROOMS_IN_SEARCH_INDEX,
  MAX_SEARCH_MATCHES_READ,
  MAX_SEARCH_WORDS,
} from '../../limits/search.ts'
import type { UserRooms } from '../../sync/user-rooms.ts'
import type { EventCache } from '../room/event-cache.ts'
import type { RoomRegistry } from '../room/registry.ts'
import type { Room } from '../room/room.ts'
import type { RoomAccess } from '../room/room-access.ts'
import type { RoomEvent } from '../room/room-event.ts'
import type { SearchToken } from './search-token.ts'

export interface SearchWish {
  readonly term: string
  readonly kinds: readonly SearchKind[]
  readonly filter: EventMatcher
  readonly byRank: boolean
  readonly limit: number
  /** How many events to show around each result; undefined for none. */
  readonly context: { readonly before: number; readonly after: number; readonly withProfiles: boolean } | undefined
  readonly withState: boolean
  readonly groupBy: readonly ('room_id' | 'sender')[]
  /** The token of the page before. */
  readonly from: string | undefined
}

/** A match that the user may see. */
export interface Hit {
  readonly room: Room
  readonly event: RoomEvent
  readonly match: SearchMatch
}

/** A page of hits. */
export interface Hits {
  readonly hits: readonly Hit[]
  /** About how many there are. */
  readonly count: number
  /** From where to go on. */
  readonly next: SearchToken | undefined
}

export type FindHits = (by: Requester, wish: SearchWish, token: SearchToken | undefined) => Promise<Hits>

export interface FindHitsParts {
  readonly db: Reader & Partial<Pick<Database, 'replicas'>>
  readonly events: EventCache
  readonly access: RoomAccess
  readonly registry: RoomRegistry
  readonly userRooms: Pick<UserRooms, 'of'>
}

const NOTHING: Hits = { hits: [], count: 0, next: undefined }

/** Finds the events that have all words of a search, in the rooms that a user is or was in, as far as they may see them. */
export function createFindHits(parts: FindHitsParts): FindHits {
  const { db, events, access, registry, userRooms } = parts
  const hiddenByEdit = createHiddenByEdit(parts)
  const frequent = createFrequentSearches()

  /** The rooms that the user is or was in, and that the filter and the token want. */
  async function roomsOf(by: Requester, filter: EventMatcher, within: SearchToken | undefined): Promise<number[]> {
    const nids: number[] = []
    for (const [nid, { membership, forgotten }] of await userRooms.of(by.userNid)) {
      if (forgotten || !['join', 'leave', 'ban'].includes(membership)) continue
      if (filter.matchesAll && within?.room === undefined) nids.push(nid)
      else {
        const room = await registry.getByNid(nid).catch(() => undefined)
        if (room && filter.roomMatches(room.id) && (within?.room ?? room.id) === room.id) nids.push(nid)
      }
    }
    return nids
  }

  /** Whether the user is in a room, or was. */
  async function wasIn(by: Requester, room: Room): Promise<boolean> {
    if (room.localMembers.has(by.userNid)) return true
    const readable = await access.mustReadTimeline(by, room.id).catch(() => undefined)
    return readable?.departure !== undefined
  }

  /** Those of these matches that the user may see and wants, in the same order. */
  async function seen(
    by: Requester,
    wish: SearchWish,
    within: SearchToken | undefined,
    matches: readonly SearchMatch[],
  ) {
    const loaded = await events.load(matches.map(({ event_nid }) => event_nid))
    const byRoom = groupBy([...loaded.values()], ({ roomNid }) => roomNid)
    const shown = new Map<number, Omit<Hit, 'match'>>()
    for (const [roomNid, ofRoom] of byRoom) {
      const room = await registry.getByNid(roomNid).catch(() => undefined)
      if (!room || !(await wasIn(by, room))) continue
      const current = ofRoom.filter((event) => event.redactedBy === undefined && event.isInTimeline)
      const wanted = current.filter((event) => {
        const { type, sender, content } = event
        return (within?.sender ?? sender) === sender && wish.filter.eventMatches({ type, sender, content })
      })
      const visible = await access.visibleTo(by, room, wanted)
      const hidden = await hiddenByEdit(by, room, visible)
      for (const event of visible) if (!hidden.has(event.nid)) shown.set(event.nid, { room, event })
    }
    return matches.flatMap((match): Hit[] => {
      const found = shown.get(match.event_nid)
      return found ? [{ ...found, match }] : []
    })
  }

  /** The best of the newest matches: the others are found by order of time. */
  async function byRank(by: Requester, wish: SearchWish, words: readonly string[], token?: SearchToken): Promise<Hits> {
    const matches = await matchesOf(by, wish, words, token, token?.before, MAX_RANKED_MATCHES)
    const ranked = matches.toSorted((a, b) => b.rank - a.rank || b.ts - a.ts || b.event_nid - a.event_nid)
    const hits: Hit[] = []
    let offset = token?.offset ?? 0
    while (hits.length < wish.limit && offset < ranked.length) {
      const some = ranked.slice(offset, offset + wish.limit - hits.length)
      hits.push(...(await seen(by, wish, token, some)))
      offset += some.length
    }
    const newest = matches[0]
    if (newest === undefined || offset >= ranked.length) return { hits, count: matches.length, next: undefined }
    // What comes meanwhile would move the others, and pages would repeat them.
    const before = token?.before ?? { ts: newest.ts, eventNid: newest.event_nid + 1 }
    return { hits, count: matches.length, next: { offset, before } }
  }

  async function byTime(by: Requester, wish: SearchWish, words: readonly string[], token?: SearchToken): Promise<Hits> {
    const hits: Hit[] = []
    let before = token?.before
    let count = 0
    for (let read = 0; read < MAX_SEARCH_MATCHES_READ; ) {
      const size = Math.max(2 * (wish.limit - hits.length), 20)
      const matches = await matchesOf(by, wish, words, token, before, size)
      count += matches.length
      read += matches.length
      for (const hit of await seen(by, wish, token, matches)) {
        if (hits.length === wish.limit) return { hits, count, next: { before: placeOf(hits.at(-1)!.match) } }
        hits.push(hit)
      }
      const last = matches.at(-1)
      if (!last || matches.length < size) return { hits, count, next: undefined }
      before = placeOf(last)
    }
    return { hits, count, next: before && { before } }
  }

  async function matchesOf(
    by: Requester,
    wish: SearchWish,
    words: readonly string[],
    token: SearchToken | undefined,
    before: SearchToken['before'],
    limit: number,
  ): Promise<SearchMatch[]> {
    const roomNids = await roomsOf(by, wish.filter, token)
    if (roomNids.length === 0) return []
    const query = { words, kinds: wish.kinds, roomNids, before, limit }
    return findMatches(searches(db), query, roomNids.length <= MAX_ROOMS_IN_SEARCH_INDEX, frequent)
  }

  return async (by, wish, token) => {
    const words = searchedWords(wish.term)
    if (words.length === 0) return NOTHING
    return wish.byRank ? byRank(by, wish, words, token) : byTime(by, wish, words, token)
  }
}

/** Remembers the last searches whose words were frequent, unless they are long. */
export function createFrequentSearches(): FrequentSearches {
  const known = new Set<string>()
  return {
    has: (search) => known.has(search),
    add(search) {
      if (search.length > MAX_FREQUENT_SEARCH_CHARS) return
      known.add(search)
      if (known.size > MAX_FREQUENT_SEARCHES) known.delete(known.values().next().value!)
    },
  }
}

/** The words of a search term that are looked for. */
export const searchedWords = (term: string): string[] => wordsOf(term).slice(0, MAX_SEARCH_WORDS)

const placeOf = ({ ts, event_nid }: SearchMatch) => ({ ts, eventNid: event_nid })

/** Those of these events that were found by the text of an edit that the user may not see: one made after they left, for example. */
function createHiddenByEdit({ db, events, access }: Pick<FindHitsParts, 'db' | 'events' | 'access'>) {
  return async (by: Requester, room: Room, found: readonly RoomEvent[]): Promise<ReadonlySet<number>> => {
    const edited = new Map(found.filter(({ hasRelations }) => hasRelations).map((event) => [event.id, event]))
    if (edited.size === 0) return new Set()
    const asked = [...edited.values()].map(({ id, sender, type }) => ({ id, editor: sender, type, mayBeRoot: false }))
    const wish = { userId: by.userId, upTo: Number.MAX_SAFE_INTEGER, references: 0, ignored: [] }
    const edits = (await getAggregations(db, room.nid, asked, wish)).filter(({ kind }) => kind === 'm.replace')
    const loaded = await events.load(edits.map(({ child_nid }) => child_nid))
    const visible = new Set((await access.visibleTo(by, room, [...loaded.values()])).map(({ nid }) => nid))
    const hidden = edits.filter(({ child_nid }) => !visible.has(child_nid))
    return new Set(hidden.flatMap(({ target_id }) => edited.get(target_id)?.nid ?? []))
  }
}
