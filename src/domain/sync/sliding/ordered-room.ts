import type { UserRoom } from '../user-rooms.ts'

/** A room in the order of lists. */
export interface OrderedRoom {
  readonly nid: number
  readonly isJoined: boolean
  readonly membership: UserRoom
  /** The position of what last happened there. */
  readonly recency: number
  /** False for a room that the user never was in: it shows its stripped state. */
  readonly wasIn: boolean
  /** The stream position at which the user came out of it, if that is before the membership. */
  readonly leftAt?: number | undefined
}

/** The order of the last look at the same user's rooms: nearly the same, so sorting it again costs little. */
export type LastOrders = WeakMap<ReadonlyMap<number, UserRoom>, readonly number[]>
