import { createHash } from 'node:crypto'
import type { ByteBudget } from '../../../core/byte-budget.ts'
import { ProtocolError } from '../../../core/errors.ts'
import type { JsonObject } from '../../../core/json.ts'
import {
  MAX_CONNECTION_ID_CHARS,
  MAX_FILTER_VALUES,
  MAX_LIST_KEY_CHARS,
  MAX_PATTERN_CHARS,
  MAX_RANGES,
  MAX_SLIDING_LISTS,
  MAX_SLIDING_SUBSCRIPTIONS,
  MAX_SLIDING_TIMELINE,
  MAX_STATE_PATTERNS,
  MAX_STATE_PATTERNS_IN_ALL,
  MAX_UNSTABLE_SUBSCRIPTIONS,
} from '../../limits/sliding-sync.ts'
import { scopeOf } from './position.ts'
import { readExtensions } from './read-extensions.ts'
import type { Asked, ListFilters, RoomWish, SlidingList, SlidingRequest } from './request.ts'
import { ME, RequiredPart, type RequiredState, requiredState, type StatePattern } from './required-state.ts'
import { MERGED, type SlidingShape, UNSTABLE } from './shapes.ts'

/** Filters of a list, as both texts write them; the invitations have two names. */
export interface FilterBody {
  readonly is_dm?: boolean
  readonly is_encrypted?: boolean
  readonly is_invited?: boolean
  readonly is_invite?: boolean
  readonly spaces?: readonly string[]
  readonly room_types?: readonly (string | null)[]
  readonly not_room_types?: readonly (string | null)[]
  readonly tags?: readonly string[]
  readonly not_tags?: readonly string[]
  readonly room_name_like?: string
}

interface Body<Wish, List> {
  readonly conn_id?: string
  readonly lists?: Readonly<Record<string, List>>
  readonly room_subscriptions?: Readonly<Record<string, Wish>>
  readonly extensions?: Readonly<Record<string, JsonObject>>
}

interface PatternBody {
  readonly type?: string
  readonly state_key?: string
}

export interface MergedWish {
  readonly timeline_limit: number
  readonly required_state: {
    readonly include?: readonly PatternBody[]
    readonly exclude?: readonly PatternBody[]
    readonly lazy_members?: boolean
  }
}

export type MergedBody = Body<
  MergedWish,
  MergedWish & { readonly range?: readonly number[]; readonly filters?: FilterBody }
>

export interface UnstableWish {
  readonly timeline_limit?: number
  readonly required_state?: readonly (readonly string[])[]
}

export type UnstableBody = Body<
  UnstableWish,
  UnstableWish & { readonly ranges?: readonly (readonly number[])[]; readonly filters?: FilterBody }
>

/** What a request says besides what it asks for. */
export type Circumstances = Pick<SlidingRequest, 'pos' | 'timeoutMs' | 'presence' | 'signal'>

/**
 * Reads the bodies of both texts into one request. Both throw `M_INVALID_PARAM` for what makes no sense, or is too much. The same body object
 * is read once.
 */
export interface SlidingRequests {
  merged(body: MergedBody, circumstances: Circumstances): SlidingRequest
  unstable(body: UnstableBody, circumstances: Circumstances): SlidingRequest
}

type Wishes = Pick<Asked, 'lists' | 'subscriptions'>

const READ_BYTES = 2_000

/** Clients ask for the same again and again, so what was read is kept. */
export function createSlidingRequests(budget: ByteBudget): SlidingRequests {
  const byBody = new WeakMap<object, Asked>()
  const byWishes = budget.part<string, Wishes & { readonly bytes: number }>({ bytesOf: ({ bytes }) => bytes })

  function read<Wish, List>(body: Body<Wish, List>, shape: SlidingShape, wishesOf: () => Wishes): Asked {
    const known = byBody.get(body)
    if (known) return known
    const connId = body.conn_id ?? ''
    if (connId.length > MAX_CONNECTION_ID_CHARS) {
      throw refused(`'conn_id' has more than ${MAX_CONNECTION_ID_CHARS} characters.`)
    }
    const { extensions, text } = readExtensions(body.extensions ?? {})
    const wanted = JSON.stringify([body.lists, body.room_subscriptions])
    const key = digest(`${shape.strippedState} ${wanted}`)
    const wishes = byWishes.get(key) ?? { ...wishesOf(), bytes: READ_BYTES + 4 * wanted.length }
    byWishes.set(key, wishes)
    const { lists, subscriptions } = wishes
    const asked = { shape, connId, lists, subscriptions, extensions, scope: scopeOf(extensions), key: `${key} ${text}` }
    byBody.set(body, asked)
    return asked
  }

  return {
    merged(body, circumstances) {
      const asked = read(body, MERGED, () => mergedWishes(body))
      return requestOf(circumstances, asked)
    },
    unstable(body, circumstances) {
      const asked = read(body, UNSTABLE, () => unstableWishes(body))
      return requestOf(circumstances, asked)
    },
  }
}

/** Every field by its name: the engine is several times slower to make an object by a spread and one more field. */
function requestOf({ pos, timeoutMs, presence, signal }: Circumstances, asked: Asked): SlidingRequest {
  return { pos, timeoutMs, presence, signal, asked }
}

function mergedWishes({ lists = {}, room_subscriptions: rooms = {} }: MergedBody): Wishes {
  const reader = new WishReader(MAX_SLIDING_SUBSCRIPTIONS)
  const wishOf = (wish: MergedWish) =>
    reader.wish(wish.timeline_limit, JSON.stringify(wish.required_state), () => mergedPart(wish))
  return reader.wishes(
    lists,
    (list) => ({ ...wishOf(list), ranges: list.range && [rangeOf(list.range)], filters: filtersOf(list.filters) }),
    rooms,
    wishOf,
  )
}

function unstableWishes({ lists = {}, room_subscriptions: rooms = {} }: UnstableBody): Wishes {
  const reader = new WishReader(MAX_UNSTABLE_SUBSCRIPTIONS)
  const wishOf = ({ timeline_limit: limit = 1, required_state: required = [] }: UnstableWish) =>
    reader.wish(limit, JSON.stringify(required), () => unstablePart(required))
  return reader.wishes(
    lists,
    (list) => ({ ...wishOf(list), ranges: rangesOf(list.ranges), filters: filtersOf(list.filters) }),
    rooms,
    wishOf,
  )
}

/** Reads the wishes of one request. Most of them are alike, and read once. */
class WishReader {
  readonly #maxSubscriptions: number
  readonly #required = new Map<string, RequiredState>()
  #patterns = 0

  constructor(maxSubscriptions: number) {
    this.#maxSubscriptions = maxSubscriptions
  }

  wish(timelineLimit: number, text: string, partOf: () => RequiredPart): RoomWish {
    let required = this.#required.get(text)
    if (required === undefined) {
      const part = partOf()
      const count = part.include.length + part.exclude.length
      this.#patterns += count
      if (count > MAX_STATE_PATTERNS) throw refused(`'required_state' has more than ${MAX_STATE_PATTERNS} entries.`)
      if (this.#patterns > MAX_STATE_PATTERNS_IN_ALL) {
        throw refused(`All 'required_state' together have more than ${MAX_STATE_PATTERNS_IN_ALL} entries.`)
      }
      required = requiredState([part])
      this.#required.set(text, required)
    }
    return { timelineLimit: Math.min(timelineLimit, MAX_SLIDING_TIMELINE), required }
  }

  wishes<List, Room>(
    lists: Readonly<Record<string, List>>,
    listOf: (list: List) => SlidingList,
    rooms: Readonly<Record<string, Room>>,
    wishOf: (room: Room) => RoomWish,
  ): Wishes {
    const keys = Object.keys(lists)
    const ids = Object.keys(rooms)
    if (keys.length > MAX_SLIDING_LISTS) throw refused(`There are more than ${MAX_SLIDING_LISTS} lists.`)
    if (keys.some((key) => key.length > MAX_LIST_KEY_CHARS)) {
      throw refused(`The key of a list has more than ${MAX_LIST_KEY_CHARS} characters.`)
    }
    if (ids.length > this.#maxSubscriptions)
      throw refused(`There are more than ${this.#maxSubscriptions} room subscriptions.`)
    return {
      lists: new Map(keys.map((key) => [key, listOf(lists[key]!)])),
      subscriptions: new Map(ids.map((id) => [id, wishOf(rooms[id]!)])),
    }
  }
}

/** Longer texts are in no event, so a pattern with one matches nothing. */
const isPossible = ({ type = '', stateKey = '' }: StatePattern) =>
  type.length <= MAX_PATTERN_CHARS && (stateKey === ME || stateKey.length <= MAX_PATTERN_CHARS)

function mergedPart({
  required_state: { include = [], exclude = [], lazy_members: lazy = false },
}: MergedWish): RequiredPart {
  const patterns = (some: readonly PatternBody[]) =>
    some.map(({ type, state_key: stateKey }): StatePattern => ({ type, stateKey })).filter(isPossible)
  return new RequiredPart(patterns(include), patterns(exclude), lazy)
}

/** Pairs of type and state key, with `*` for all, `$ME` for the user, and `$LAZY` for the members whom the timeline shows. */
function unstablePart(required: readonly (readonly string[])[]): RequiredPart {
  const include: StatePattern[] = []
  let lazy = false
  for (const [type = '', stateKey = ''] of required) {
    if (stateKey === '$LAZY') lazy ||= type === 'm.room.member'
    else {
      const key = stateKey === '*' ? undefined : stateKey
      include.push({ type: type === '*' ? undefined : type, stateKey: key === '$ME' ? ME : key })
    }
  }
  return new RequiredPart(include.filter(isPossible), [], lazy)
}

function rangesOf(ranges: readonly (readonly number[])[] | undefined): SlidingList['ranges'] {
  if (ranges === undefined) return undefined
  if (ranges.length > MAX_RANGES) throw refused(`A list has more than ${MAX_RANGES} ranges.`)
  return disjoint(ranges.map(rangeOf))
}

/** The same ranges, without those that overlap: no room is looked at twice for one list. */
function disjoint(ranges: readonly (readonly [number, number])[]): (readonly [number, number])[] {
  const found: [number, number][] = []
  for (const [first, last] of ranges.toSorted(([a], [b]) => a - b)) {
    const before = found.at(-1)
    if (before && first <= before[1] + 1) before[1] = Math.max(before[1], last)
    else found.push([first, last])
  }
  return found
}

function rangeOf([first, last, ...more]: readonly number[]): readonly [number, number] {
  if (first === undefined || last === undefined || more.length > 0)
    throw refused('A range has two numbers: the first and the last room.')
  if (first < 0 || last < first) throw refused('A range begins at 0 or later, and does not end before it begins.')
  return [first, last]
}

function filtersOf(filters: FilterBody = {}): ListFilters {
  const { spaces, room_types: roomTypes, not_room_types: notRoomTypes, tags, not_tags: notTags } = filters
  for (const values of [spaces, roomTypes, notRoomTypes, tags, notTags]) {
    if (values && values.length > MAX_FILTER_VALUES)
      throw refused(`A filter has more than ${MAX_FILTER_VALUES} values.`)
  }
  return {
    isDirect: filters.is_dm,
    isEncrypted: filters.is_encrypted,
    isInvited: filters.is_invited ?? filters.is_invite,
    nameLike: filters.room_name_like?.toLowerCase(),
    ...{ spaces, roomTypes, notRoomTypes, tags, notTags },
  }
}

const digest = (text: string): string => createHash('sha256').update(text).digest('base64')

function refused(message: string): ProtocolError {
  return new ProtocolError('M_INVALID_PARAM', message)
}
