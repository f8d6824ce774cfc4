import { MAX_WISH_CHARS_PER_CONNECTION, MAX_WISHES_PER_CONNECTION } from '../../limits/sliding-sync.ts'
import type { EventPosition } from '../token.ts'
import { type ME, RequiredPart, type RequiredState, requiredState, type StatePattern } from './required-state.ts'

/** How far a client was sent a room that it has not been sent all news of. */
export interface SentUpTo {
  readonly events: EventPosition
  readonly ledger: number
}

/** What a client was sent of a room. */
export interface SentRoom {
  /** It has the newest so many events. */
  readonly timelineLimit: number
  /** It has this state. */
  readonly required: RequiredState
  readonly isDirect: boolean
  /** Undefined while the room is up to date at the connection's position. */
  readonly upTo: SentUpTo | undefined
}

/** What a client was sent on a connection. Immutable. */
export interface SlidingRecord {
  /** Larger for newer answers; 0 for a client that was sent no room. */
  readonly version: number
  readonly rooms: ReadonlyMap<number, SentRoom>
  /** Stands for the answers that led here, and that the client has. It differs after an answer that was lost. Only kept in memory. */
  readonly lineage: number
}

export function isSameRoom(one: SentRoom, other: SentRoom): boolean {
  return (
    one === other ||
    (one.timelineLimit === other.timelineLimit &&
      one.required.key === other.required.key &&
      one.isDirect === other.isDirect &&
      one.upTo === other.upTo)
  )
}

/** Without rooms that are not shown now, if the client had too many different wishes for them, or too long ones: those rooms are sent anew. */
export function withinWishes(rooms: Map<number, SentRoom>, isShown: (nid: number) => boolean): Map<number, SentRoom> {
  const { count, chars } = wishesIn(rooms)
  if (count <= MAX_WISHES_PER_CONNECTION && chars <= MAX_WISH_CHARS_PER_CONNECTION) return rooms
  return new Map([...rooms].filter(([nid]) => isShown(nid)))
}

/** How many different wishes there are for rooms, and how long they are together. Wishes share their parts. */
function wishesIn(rooms: SlidingRecord['rooms']): { readonly count: number; readonly chars: number } {
  const wishes = new Set<string>()
  const parts = new Set<string>()
  let chars = 0
  for (const { required } of rooms.values()) {
    if (wishes.has(required.key)) continue
    wishes.add(required.key)
    for (const { key, text } of required.parts) {
      if (!parts.has(key)) chars += text.length
      parts.add(key)
    }
  }
  return { count: wishes.size, chars }
}

type StoredPattern = readonly [type: string | null, stateKey: string | typeof ME | null]
type StoredPart = readonly [include: readonly StoredPattern[], exclude: readonly StoredPattern[], isLazy: 0 | 1]

interface StoredRecord {
  readonly parts: readonly StoredPart[]
  /** The parts of each wish, by place. */
  readonly wishes: readonly (readonly number[])[]
  readonly positions: readonly (readonly [events: EventPosition, ledger: number])[]
  readonly rooms: readonly (readonly [nid: number, wish: number, limit: number, isDirect: 0 | 1, position?: number])[]
}

/** Gives equal texts one place each. */
class Places {
  readonly texts: string[] = []
  readonly #places = new Map<string, number>()

  of(text: string): number {
    const known = this.#places.get(text)
    if (known !== undefined) return known
    this.#places.set(text, this.texts.length)
    return this.texts.push(text) - 1
  }
}

/** Wishes and positions are shared by rooms, so each is written once. */
export function writeRecord({ rooms }: Pick<SlidingRecord, 'rooms'>): string {
  const parts = new Places()
  const wishes = new Places()
  const positions = new Places()
  const placeOf = new Map<unknown, number>()
  const place = (shared: object, make: () => number): number => {
    const known = placeOf.get(shared)
    if (known !== undefined) return known
    const made = make()
    placeOf.set(shared, made)
    return made
  }
  const written: string[] = []
  for (const [nid, { required, timelineLimit, isDirect, upTo }] of rooms) {
    const wish = place(required, () => wishes.of(`[${required.parts.map(({ text }) => parts.of(text)).join()}]`))
    const at = upTo && place(upTo, () => positions.of(JSON.stringify([upTo.events, upTo.ledger])))
    written.push(`[${nid},${wish},${timelineLimit},${isDirect ? 1 : 0}${at === undefined ? '' : `,${at}`}]`)
  }
  const list = (texts: readonly string[]) => `[${texts.join()}]`
  return `{"parts":${list(parts.texts)},"wishes":${list(wishes.texts)},"positions":${list(positions.texts)},"rooms":${list(written)}}`
}

export function readRecord(version: number, text: string): SlidingRecord {
  const stored = JSON.parse(text) as StoredRecord
  const patternOf = ([type, stateKey]: StoredPattern): StatePattern => ({
    type: type ?? undefined,
    stateKey: stateKey ?? undefined,
  })
  const parts = stored.parts.map(
    ([include, exclude, isLazy]) => new RequiredPart(include.map(patternOf), exclude.map(patternOf), isLazy === 1),
  )
  const wishes = stored.wishes.map((places) => requiredState(places.map((place) => parts[place]!)))
  const positions = stored.positions.map(([events, ledger]): SentUpTo => ({ events, ledger }))
  const rooms = stored.rooms.map(([nid, wish, timelineLimit, isDirect, at]): [number, SentRoom] => {
    const upTo = at === undefined ? undefined : positions[at]
    return [nid, { required: wishes[wish]!, timelineLimit, isDirect: isDirect === 1, upTo }]
  })
  return { version, rooms: new Map(rooms), lineage: version }
}

const RECORD_BYTES = 400
const ROOM_BYTES = 130
/** For a character of a wish: its text, and its patterns as they were read. */
const WISH_BYTES = 5

/** Bytes in memory. It looks at all rooms. */
export function recordBytes({ rooms }: Pick<SlidingRecord, 'rooms'>): number {
  return RECORD_BYTES + rooms.size * ROOM_BYTES + wishesIn(rooms).chars * WISH_BYTES
}
