import { compileFields, type FieldTree } from './event-fields.ts'
import { compileWildcard, type TextMatcher } from './glob.ts'
import type { JsonObject } from './json.ts'

/** Which events a client wants (client-server API, "Filtering"; EventFilter). An absent list of inclusions includes everything. */
export interface EventFilter {
  readonly limit?: number
  readonly types?: readonly string[]
  readonly not_types?: readonly string[]
  readonly senders?: readonly string[]
  readonly not_senders?: readonly string[]
}

/** StateFilter and RoomEventFilter, with the fields that later releases added. */
export interface RoomEventFilter extends EventFilter {
  readonly rooms?: readonly string[]
  readonly not_rooms?: readonly string[]
  readonly contains_url?: boolean
  readonly lazy_load_members?: boolean
  readonly include_redundant_members?: boolean
  readonly unread_thread_notifications?: boolean
  /** The name before release 1.4 (MSC3773). */
  readonly 'org.matrix.msc3773.unread_thread_notifications'?: boolean
  readonly related_by_rel_types?: readonly string[]
  readonly related_by_senders?: readonly string[]
}

export interface RoomFilter {
  readonly rooms?: readonly string[]
  readonly not_rooms?: readonly string[]
  readonly include_leave?: boolean
  readonly ephemeral?: RoomEventFilter
  readonly state?: RoomEventFilter
  readonly timeline?: RoomEventFilter
  readonly account_data?: RoomEventFilter
}

export interface Filter {
  readonly event_fields?: readonly string[]
  readonly event_format?: 'client' | 'federation'
  readonly presence?: EventFilter
  readonly account_data?: EventFilter
  readonly room?: RoomFilter
}

/** The part of an event that filters use; account data and typing have no sender. */
export interface Filterable {
  readonly type: string
  readonly sender?: string
  readonly content: JsonObject
}

/** The event must have a related event of one of the types and by one of the senders. */
export interface RelatedBy {
  readonly relTypes: ReadonlySet<string> | undefined
  readonly senders: ReadonlySet<string> | undefined
}

export interface EventMatcher {
  /** True if every event of every room matches, apart from `relatedBy`. */
  readonly matchesAll: boolean
  readonly eventMatches: (event: Filterable) => boolean
  readonly roomMatches: (roomId: string) => boolean
  /** The relations that an event must have. They are not in the event itself; check them after `eventMatches`. */
  readonly relatedBy: RelatedBy | undefined
  readonly limit: number | undefined
  readonly lazyLoadMembers: boolean
  readonly includeRedundantMembers: boolean
  readonly unreadThreadNotifications: boolean
  readonly unstableThreadNotifications: boolean
}

/** The filter that wants everything. */
export const MATCH_ALL: EventMatcher = {
  matchesAll: true,
  eventMatches: () => true,
  roomMatches: () => true,
  relatedBy: undefined,
  limit: undefined,
  lazyLoadMembers: false,
  includeRedundantMembers: false,
  unreadThreadNotifications: false,
  unstableThreadNotifications: false,
}

export interface CompiledFilter {
  /** Undefined when all fields are wanted. */
  readonly eventFields: FieldTree | undefined
  readonly eventFormat: 'client' | 'federation'
  readonly presence: EventMatcher
  readonly accountData: EventMatcher
  readonly room: {
    readonly includeLeave: boolean
    /** Only these, of which `roomMatches` may still exclude some; undefined if it names none. */
    readonly rooms: readonly string[] | undefined
    /** Check this before the filters below. */
    readonly roomMatches: (roomId: string) => boolean
    readonly ephemeral: EventMatcher
    readonly state: EventMatcher
    readonly timeline: EventMatcher
    readonly accountData: EventMatcher
  }
}

/** Compiles a filter once for all events of a request. Without a filter everything matches. */
export function compileFilter(filter: Filter = {}): CompiledFilter {
  const { event_fields: fields, room = {} } = filter
  return {
    eventFields: fields === undefined || fields.length === 0 ? undefined : compileFields(fields),
    eventFormat: filter.event_format ?? 'client',
    presence: compileEventFilter(filter.presence),
    accountData: compileEventFilter(filter.account_data),
    room: {
      includeLeave: room.include_leave ?? false,
      rooms: room.rooms,
      roomMatches: isListed(room.rooms, room.not_rooms),
      ephemeral: compileEventFilter(room.ephemeral),
      state: compileEventFilter(room.state),
      timeline: compileEventFilter(room.timeline),
      accountData: compileEventFilter(room.account_data),
    },
  }
}

/** Compiles one part of a filter, or the filter parameter of an endpoint that takes a RoomEventFilter. */
export function compileEventFilter(filter: RoomEventFilter | undefined): EventMatcher {
  if (filter === undefined) return MATCH_ALL
  const tests = testsOf(filter)
  const roomMatches = isListed(filter.rooms, filter.not_rooms)
  return {
    matchesAll: tests.length === 0 && roomMatches === EVERYTHING,
    eventMatches: tests.length === 0 ? MATCH_ALL.eventMatches : (event) => tests.every((test) => test(event)),
    roomMatches,
    relatedBy: relatedByOf(filter),
    limit: filter.limit,
    lazyLoadMembers: filter.lazy_load_members ?? false,
    includeRedundantMembers: filter.include_redundant_members ?? false,
    unreadThreadNotifications: filter.unread_thread_notifications ?? false,
    unstableThreadNotifications: filter['org.matrix.msc3773.unread_thread_notifications'] ?? false,
  }
}

function testsOf(filter: RoomEventFilter): ((event: Filterable) => boolean)[] {
  const tests: ((event: Filterable) => boolean)[] = []
  const { types, not_types: notTypes, senders, not_senders: notSenders, contains_url: containsUrl } = filter
  const isWanted = types && anyOf(types)
  if (isWanted) tests.push(({ type }) => isWanted(type))
  const isUnwanted = notTypes && anyOf(notTypes)
  if (isUnwanted) tests.push(({ type }) => !isUnwanted(type))
  const senderMatches = isListed(senders, notSenders)
  if (senderMatches !== EVERYTHING) tests.push(({ sender = '' }) => senderMatches(sender))
  if (containsUrl !== undefined) tests.push(({ content }) => Object.hasOwn(content, 'url') === containsUrl)
  return tests
}

/** An empty list sets no condition, as clients use it. */
function relatedByOf(filter: RoomEventFilter): RelatedBy | undefined {
  const setOf = (list: readonly string[] = []) => (list.length === 0 ? undefined : new Set(list))
  const [relTypes, senders] = [setOf(filter.related_by_rel_types), setOf(filter.related_by_senders)]
  return relTypes || senders ? { relTypes, senders } : undefined
}

const EVERYTHING: TextMatcher = () => true

/** In the first list, if there is one, and not in the second, which wins. */
function isListed(included: readonly string[] | undefined, excluded: readonly string[] = []): TextMatcher {
  if (included === undefined && excluded.length === 0) return EVERYTHING
  const unwanted = new Set(excluded)
  if (included === undefined) return (text) => !unwanted.has(text)
  const wanted = new Set(included.filter((text) => !unwanted.has(text)))
  return (text) => wanted.has(text)
}

/** Event types, where `*` stands for any characters. */
function anyOf(patterns: readonly string[]): TextMatcher {
  const plain = new Set(patterns.filter((pattern) => !pattern.includes('*')))
  const wildcards = patterns.filter((pattern) => pattern.includes('*')).map(compileWildcard)
  return (type) => plain.has(type) || wildcards.some((matches) => matches(type))
}
