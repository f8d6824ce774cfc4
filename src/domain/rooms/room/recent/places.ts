import type { RoomEvent } from '../room-event.ts'

/** The place of an event. */
export interface Place {
  readonly nid: number
  readonly pos: number
  readonly streamPos: number
  readonly notifiable: number
}

/** This many places of committed events are kept, so that a sync that is nearly up to date needs no query. */
const KEPT = 64
/** Numbers of a place, in the order of {@link Place}. */
const WIDTH = 4
/** Bytes of a place: its numbers, and what an array that grows has to spare. Measured: a test compares them with the heap. */
const PLACE_BYTES = 40

/** Places of the newest events of a room, oldest first. As plain numbers they take half the memory that objects would. */
export class Places {
  #numbers: number[] = []

  get bytes(): number {
    return this.length * PLACE_BYTES
  }

  get length(): number {
    return this.#numbers.length / WIDTH
  }

  /** @param index from 0, and less than `length` */
  at(index: number): Place {
    const from = index * WIDTH
    const numbers = this.#numbers
    return {
      nid: numbers[from]!,
      pos: numbers[from + 1]!,
      streamPos: numbers[from + 2]!,
      notifiable: numbers[from + 3]!,
    }
  }

  /** The newest place, if there is any. */
  get newest(): Place | undefined {
    return this.length === 0 ? undefined : this.at(this.length - 1)
  }

  /** The newest place for which this holds. */
  findLast(holds: (place: Place) => boolean): Place | undefined {
    for (let index = this.length - 1; index >= 0; index--) {
      const place = this.at(index)
      if (holds(place)) return place
    }
    return undefined
  }

  /** Those above one position of the timeline, and up to another. */
  between(after: number, upTo: number): Place[] {
    const found: Place[] = []
    for (let index = 0; index < this.length; index++) {
      const pos = this.#numbers[index * WIDTH + 1]!
      if (pos > after && pos <= upTo) found.push(this.at(index))
    }
    return found
  }

  /** The numbers of so many of the newest events, oldest first. */
  newestNids(count: number): number[] {
    const nids: number[] = []
    for (let index = Math.max(0, this.length - count); index < this.length; index++)
      nids.push(this.#numbers[index * WIDTH]!)
    return nids
  }

  /** Adds the event that is newer than all others. */
  push(event: RoomEvent): void {
    this.#numbers.push(event.nid, event.pos, event.streamPos, event.notifiable)
    if (this.length > 2 * KEPT) this.#numbers = this.#numbers.slice(-KEPT * WIDTH)
  }

  /** Adds events that are older than all others, in their order; too many are left out. */
  extend(older: readonly RoomEvent[]): void {
    const numbers: number[] = []
    for (let index = Math.max(0, older.length + this.length - KEPT); index < older.length; index++) {
      const { nid, pos, streamPos, notifiable } = older[index]!
      numbers.push(nid, pos, streamPos, notifiable)
    }
    const newer = this.#numbers
    for (let at = Math.max(0, newer.length - KEPT * WIDTH); at < newer.length; at++) numbers.push(newer[at]!)
    this.#numbers = numbers
  }

  /** Leaves only those above a position of the timeline. */
  keepAbove(pos: number): void {
    let below = 0
    while (below < this.length && this.#numbers[below * WIDTH + 1]! <= pos) below++
    this.#numbers = this.#numbers.slice(below * WIDTH)
  }
}
