import type { JsonBytes } from '../../../../core/json-bytes.ts'
import { deviceChanges, type NeighbourChanges } from '../../device-changes.ts'
import type { StreamPosition } from '../../token.ts'
import type { UserRoom } from '../../user-rooms.ts'
import type { SlidingLook } from '../look.ts'
import { sentUpTo } from '../look.ts'
import type { RoomExtension } from '../request.ts'
import type { RoomAnswer } from '../room-answer.ts'
import type { WantedRoom } from '../windows.ts'

/** An extension's part of an answer. */
export interface ExtensionPart {
  readonly name: string
  readonly json: JsonBytes
  /** Whether it alone makes the answer worth sending. */
  readonly hasNews: boolean
  /** Whether more is to come at the same position. */
  readonly hasMore?: boolean
  /** The ledger position up to which the client hears of changed profiles with it; undefined for the end of the look. */
  readonly profilesUpTo?: number | undefined
}

/** A room that the answer shows or could show: what extensions tell about. */
export interface ScopedRoom {
  readonly wanted: WantedRoom
  readonly answer: RoomAnswer
}

/** What extensions need to know of the answer. */
export interface ExtensionScene {
  readonly look: SlidingLook
  readonly rooms: readonly ScopedRoom[]
  readonly joined: ReadonlyMap<number, UserRoom>
  readonly departed: readonly number[]
  /** Whose devices changed since the position, and who came into the user's rooms; undefined at the beginning of a connection. */
  readonly deviceChanges: () => NeighbourChanges | Promise<NeighbourChanges> | undefined
  /** The receipts in rooms since the client was sent them, as far as they were read. */
  readonly receipts: ReadonlyMap<number, object>
}

/** Finds the changes of devices once for all extensions that ask. */
export function createDeviceChanges({
  look: { sources, by, from, now },
  joined,
  departed,
}: Pick<ExtensionScene, 'look' | 'joined' | 'departed'>): ExtensionScene['deviceChanges'] {
  if (from === undefined) return () => undefined
  const since = from.stream
  let found: NeighbourChanges | Promise<NeighbourChanges> | undefined
  return () => {
    const isQuiet = sources.roomMembers.isQuietSince(since.events[0] ?? 0)
    found ??= deviceChanges({ sources, by, since, now }, joined, isQuiet ? [] : [...joined.keys()], departed)
    return found
  }
}

export function inScope(rooms: readonly ScopedRoom[], { lists, rooms: ids }: RoomExtension): readonly ScopedRoom[] {
  if (lists === undefined && ids === undefined) return rooms
  return rooms.filter(({ wanted, answer }) => {
    if (wanted.lists.some((list) => lists === undefined || lists.includes(list))) return true
    return wanted.isSubscribed && (ids === undefined || ids.includes(answer.roomId))
  })
}

/** The position up to which an extension covered a room; undefined if it begins with it. */
export function shownUpTo(look: SlidingLook, isFresh: boolean, { answer }: ScopedRoom): StreamPosition | undefined {
  return isFresh || answer.isBegun ? undefined : sentUpTo(look, look.record.rooms.get(answer.nid))
}

/** Rooms, by the ledger position up to which an extension covered them. */
export function byLedger(
  look: SlidingLook,
  isFresh: boolean,
  rooms: readonly ScopedRoom[],
): ReadonlyMap<number | undefined, readonly ScopedRoom[]> {
  const found = new Map<number | undefined, ScopedRoom[]>()
  for (const room of rooms) {
    const ledger = shownUpTo(look, isFresh, room)?.ledger
    const some = found.get(ledger)
    if (some) some.push(room)
    else found.set(ledger, [room])
  }
  return found
}
