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
import type { SurveyedRoom } from '../../store/rooms/room-survey.ts'

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

type Viewed = (typeof VIEWED_TYPES)[number]

/** Parses state events that were stored as JSON. */
export function stateOf(texts: ReadonlyMap<string, string> | undefined): (type: Viewed) => Pdu | undefined {
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

export function topicAndAvatar(of: (type: Viewed) => Pdu | undefined) {
  return { topic: topicOf(of('m.room.topic')) ?? null, avatar: avatarOf(of('m.room.avatar')) ?? null }
}

export type RoomOrder =
  | Exclude<keyof RoomView, 'room_id' | 'room_type'>
  // The names that older tools use.
  | 'alphabetical'
  | 'size'

/** Numbers in descending order, texts in ascending order, missing values first. */
export function compareRooms(order: RoomOrder): (left: RoomView, right: RoomView) => number {
  const key = order === 'alphabetical' ? 'name' : order === 'size' ? 'joined_members' : order
  return (left, right) => compareValues(left[key], right[key]) || (left.room_id < right.room_id ? -1 : 1)
}

function compareValues(a: string | number | boolean | null, b: string | number | boolean | null): number {
  if (typeof a === 'number' && typeof b === 'number') return b - a
  const [left, right] = [String(a ?? ''), String(b ?? '')]
  if (left === right) return 0
  return left < right ? -1 : 1
}

/** Whether a term is in the room's name (in any case), the localpart of its alias, or its id. */
export function isFound({ name, canonical_alias, room_id }: RoomView, term: string): boolean {
  const lower = term.toLowerCase()
  return (
    (name ?? '').toLowerCase().includes(lower) ||
    localpartOf(canonical_alias ?? '')
      .toLowerCase()
      .includes(lower) ||
    room_id.includes(term)
  )
}
