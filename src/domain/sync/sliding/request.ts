import type { Cancellation } from '../../cancellation.ts'
import type { PresenceState } from '../presence.ts'
import type { EventPosition } from '../token.ts'
import type { RequiredState } from './required-state.ts'
import type { SlidingShape } from './shapes.ts'

/** What a request asks for, in either form, from whatever position. */
export interface Asked {
  readonly shape: SlidingShape
  /** The name of the connection; '' for none. */
  readonly connId: string
  readonly lists: ReadonlyMap<string, SlidingList>
  /** By room id. */
  readonly subscriptions: ReadonlyMap<string, RoomWish>
  readonly extensions: SlidingExtensions
  /** Stands for the rooms that extensions are wanted for. */
  readonly scope: string
  /** The same for requests that ask for the same. */
  readonly key: string
}

export interface SlidingRequest {
  readonly asked: Asked
  readonly pos: string | undefined
  readonly timeoutMs: number
  readonly presence: PresenceState
  /** Aborted when the client disconnects. */
  readonly signal: Cancellation
}

/** What a client wants of a room. */
export interface RoomWish {
  readonly timelineLimit: number
  readonly required: RequiredState
}

export interface SlidingList extends RoomWish {
  /** Inclusive, from 0, in order and without overlaps; undefined for all rooms. */
  readonly ranges: readonly (readonly [first: number, last: number])[] | undefined
  readonly filters: ListFilters
}

/** What is undefined does not filter. */
export interface ListFilters {
  readonly isDirect?: boolean | undefined
  readonly isEncrypted?: boolean | undefined
  readonly isInvited?: boolean | undefined
  readonly spaces?: readonly string[] | undefined
  /** null stands for rooms without a type. */
  readonly roomTypes?: readonly (string | null)[] | undefined
  readonly notRoomTypes?: readonly (string | null)[] | undefined
  readonly tags?: readonly string[] | undefined
  readonly notTags?: readonly string[] | undefined
  /** Part of the room's name, in small letters. */
  readonly nameLike?: string | undefined
}

export interface Extension {
  /** The key of its part of the answer: that of the request. */
  readonly name: string
}

/** An extension for the rooms that the request shows, or for some of them. */
export interface RoomExtension extends Extension {
  /** Of rooms in these lists; undefined for all lists. */
  readonly lists: readonly string[] | undefined
  /** Of these among the rooms asked for by id; undefined for all. */
  readonly rooms: readonly string[] | undefined
}

export interface SlidingExtensions {
  readonly toDevice?: (Extension & { readonly limit: number; readonly since: number | undefined }) | undefined
  readonly e2ee?: Extension | undefined
  readonly accountData?: RoomExtension | undefined
  readonly receipts?: RoomExtension | undefined
  readonly typing?: RoomExtension | undefined
  readonly threadSubscriptions?: (Extension & { readonly limit: number }) | undefined
  /** `since`: how far the client was sent sticky events. */
  readonly stickyEvents?:
    | (Extension & { readonly limit: number; readonly since: EventPosition | undefined })
    | undefined
  readonly presence?: Extension | undefined
  /** `fields`: undefined for all. */
  readonly profiles?: (RoomExtension & { readonly fields: readonly string[] | undefined }) | undefined
}
