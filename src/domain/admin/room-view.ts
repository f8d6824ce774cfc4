import {
  avatarOf,
  canonicalAliasOf,
  createContentOf,
  encryptionAlgorithmOf,
  guestAccessOf,
  historyVisibilityOf,
  joinRuleOf,
  roomNameOf,
  topicOf,
} from '../../core/event/content.ts'
import type { Pdu } from '../../core/event/format.ts'
import { localpartOf } from '../../core/ids.ts'
import type { ListedRoom, RoomFigure, SurveyedRoom } from '../../store/rooms/room-survey.ts'

/** A room in a list for operators. */
export interface RoomView {
  readonly room_id: string
  readonly name: string | null
  readonly canonical_alias: string | null
  readonly joined_members: number
  readonly joined_local_members: number
  readonly version: string
  readonly creator: string | null
  readonly encryption: string | null
  readonly federatable: boolean
  readonly public: boolean
  readonly join_rules: string | null
  readonly guest_access: string | null
  readonly history_visibility: string | null
  readonly state_events: number
  readonly room_type: string | null
}

/** The state types that a view contains. */
export const VIEWED_TYPES = [
  'm.room.create',
  'm.room.name',
  'm.room.topic',
  'm.room.avatar',
  'm.room.canonical_alias',
  'm.room.encryption',
  'm.room.join_rules',
  'm.room.guest_access',
  'm.room.history_visibility',
] as const

export type Viewed = (typeof VIEWED_TYPES)[number]

/** Parses state events that were stored as JSON. */
export function stateOf(texts: ReadonlyMap<string, string> | undefined): (type: string) => Pdu | undefined {
  return (type) => {
    const text = texts?.get(type)
    return text === undefined ? undefined : (JSON.parse(text) as Pdu)
  }
}

export function roomView(row: SurveyedRoom, of: (type: Viewed) => Pdu | undefined): RoomView {
  const create = of('m.room.create')
  const { federates, type } = createContentOf(create)
  /** A value that nobody has set is null, and not its default. */
  const stated = <T>(event: Pdu | undefined, read: (event: Pdu) => T): T | null => (event ? read(event) : null)
  return {
    room_id: row.room_id,
    name: roomNameOf(of('m.room.name')) ?? null,
    canonical_alias: canonicalAliasOf(of('m.room.canonical_alias')) ?? null,
    joined_members: row.joined,
    joined_local_members: row.joined_local,
    version: row.room_version,
    creator: create?.sender ?? null,
    encryption: encryptionAlgorithmOf(of('m.room.encryption')) ?? null,
    federatable: federates,
    public: row.is_public,
    join_rules: stated(of('m.room.join_rules'), joinRuleOf),
    guest_access: stated(of('m.room.guest_access'), guestAccessOf),
    history_visibility: stated(of('m.room.history_visibility'), historyVisibilityOf),
    state_events: row.state_events,
    room_type: type ?? null,
  }
}

/** What only the view of a single room has. */
export function roomDetails(of: (type: Viewed | 'm.room.tombstone') => Pdu | undefined) {
  const tombstone = of('m.room.tombstone')
  const replacement = tombstone?.content.replacement_room
  return {
    topic: topicOf(of('m.room.topic')) ?? null,
    avatar: avatarOf(of('m.room.avatar')) ?? null,
    tombstoned: tombstone !== undefined,
    replacement_room: typeof replacement === 'string' ? replacement : null,
  }
}

export type RoomOrder =
  | Exclude<keyof RoomView, 'room_id' | 'room_type'>
  // The names that older tools use.
  | 'alphabetical'
  | 'size'

/** By what rooms are put in order: a count, what the room itself says, or a piece of its state. */
interface OrderRule {
  readonly figure?: RoomFigure
  readonly type?: Viewed
  /** @param event the state of that type */
  readonly read: (room: ListedRoom, event: Pdu | undefined) => string | number | null
  readonly isLargestFirst?: true
}

const byFigure = (figure: RoomFigure): OrderRule => ({ figure, read: (room) => room.figure, isLargestFirst: true })

/** Versions are numbers, but for trials, whose names are no numbers. */
const versionValue = (version: string): number => (/^\d{1,9}$/.test(version) ? Number(version) : 0)

const byState = (type: Viewed, value: (event: Pdu) => string | undefined): OrderRule => ({
  type,
  read: (_room, event) => (event && value(event)) ?? null,
})

const BY_NAME = byState('m.room.name', roomNameOf)
const BY_SIZE = byFigure('joined')

/** Counts and versions the largest first, all else in ascending order, missing values first. */
const ORDER_RULES: Readonly<Record<RoomOrder, OrderRule>> = {
  name: BY_NAME,
  alphabetical: BY_NAME,
  canonical_alias: byState('m.room.canonical_alias', canonicalAliasOf),
  joined_members: BY_SIZE,
  size: BY_SIZE,
  joined_local_members: byFigure('joined_local'),
  version: { read: ({ room_version }) => versionValue(room_version), isLargestFirst: true },
  creator: byState('m.room.create', ({ sender }) => sender),
  encryption: byState('m.room.encryption', encryptionAlgorithmOf),
  federatable: byState('m.room.create', (event) => String(createContentOf(event).federates)),
  public: { read: ({ is_public }) => String(is_public) },
  join_rules: byState('m.room.join_rules', joinRuleOf),
  guest_access: byState('m.room.guest_access', guestAccessOf),
  history_visibility: byState('m.room.history_visibility', historyVisibilityOf),
  state_events: byFigure('state_events'),
}

/** What must be known of all rooms before they can be put in an order. */
export const neededFor = (order: RoomOrder): Pick<OrderRule, 'figure' | 'type'> => ORDER_RULES[order]

/** The rooms in an order; those that are alike by their ids. */
export function inOrder<T extends ListedRoom>(
  rooms: readonly T[],
  order: RoomOrder,
  stateOfRoom: (room: T) => (type: Viewed) => Pdu | undefined,
): T[] {
  const { type, read, isLargestFirst } = ORDER_RULES[order]
  const placed = rooms.map((room) => ({ room, value: read(room, type && stateOfRoom(room)(type)) }))
  placed.sort(
    (left, right) =>
      (isLargestFirst ? -1 : 1) * compareValues(left.value, right.value) ||
      (left.room.room_id < right.room.room_id ? -1 : 1),
  )
  return placed.map(({ room }) => room)
}

function compareValues(a: string | number | null, b: string | number | null): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b
  const [left, right] = [String(a ?? ''), String(b ?? '')]
  if (left === right) return 0
  return left < right ? -1 : 1
}

/** What a search looks at beside the id. */
export const SEARCHED_TYPES = ['m.room.name', 'm.room.canonical_alias'] as const satisfies readonly Viewed[]

/** Whether a term is in the room's name (in any case), the localpart of its alias, or its id. */
export function isFound(roomId: string, of: (type: Viewed) => Pdu | undefined, term: string): boolean {
  const lower = term.toLowerCase()
  return (
    (roomNameOf(of('m.room.name')) ?? '').toLowerCase().includes(lower) ||
    localpartOf(canonicalAliasOf(of('m.room.canonical_alias')) ?? '')
      .toLowerCase()
      .includes(lower) ||
    roomId.includes(term)
  )
}
