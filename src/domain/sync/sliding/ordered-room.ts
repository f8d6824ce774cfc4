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

/** Negative if the first room stands before the other one. No two rooms are equal. */
export const byRecency = (a: OrderedRoom, b: OrderedRoom): number => b.recency - a.recency || b.nid - a.nid

/** Where a room stands, or would stand, in an order. */
export function placeIn(order: readonly OrderedRoom[], room: OrderedRoom): number {
  let from = 0
  let to = order.length
  while (from < to) {
    const middle = (from + to) >> 1
    if (byRecency(order[middle]!, room) < 0) from = middle + 1
    else to = middle
  }
  return from
}

/** The order with some more rooms. */
export function withRooms(order: readonly OrderedRoom[], more: readonly OrderedRoom[]): readonly OrderedRoom[] {
  if (more.length === 0) return order
  if (more.length > MANY) return [...order, ...more].sort(byRecency)
  const all = [...order]
  for (const room of more) all.splice(placeIn(all, room), 0, room)
  return all
}

/** More rooms than this are faster sorted all together than each put in its place. */
const MANY = 32
