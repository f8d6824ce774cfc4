import type { Room } from '../room/room.ts'
import type { Outcome, Unit } from './unit.ts'

/** A unit whose caller waits for its outcome. */
export interface Waiting {
  readonly unit: Unit
  readonly resolve: (outcome: Outcome) => void
  readonly reject: (error: unknown) => void
}

/** What was taken for one commit. */
export interface Taken {
  readonly group: readonly Waiting[]
  /** Those among them that stand on a dead room: they are to be built again. */
  readonly moved: readonly Waiting[]
}

const MAX_EVENTS_PER_BATCH = 512

/** The units that wait to be written, in order. */
export class UnitQueue {
  readonly #refused: (room: Room) => void
  #waiting: Waiting[] = []

  /** @param refused called for each room whose unit cannot be written as it is */
  constructor(refused: (room: Room) => void) {
    this.#refused = refused
  }

  get length(): number {
    return this.#waiting.length
  }

  add(waiting: Waiting): void {
    this.#waiting.push(waiting)
  }

  /** How many units stand before the first one of these rooms. */
  lengthBefore(rooms: ReadonlySet<number> | undefined): number {
    if (!rooms?.size) return this.#waiting.length
    const index = this.#waiting.findIndex(({ unit }) => rooms.has(unit.room.nid))
    return index < 0 ? this.#waiting.length : index
  }

  /**
   * Takes what fits into one commit: whole units, in order. Sends units on a dead room back to be built again. Does the same with units on
   * a second copy of a room while the first copy still has units here, because a batch moves a head once.
   *
   * @param upTo take only so many units
   */
  take(upTo = this.#waiting.length): Taken {
    const group: Waiting[] = []
    const moved: Waiting[] = []
    const rooms = new Map<number, Room>()
    let events = 0
    let index = 0
    for (; index < upTo && events < MAX_EVENTS_PER_BATCH; index++) {
      const waiting = this.#waiting[index]!
      const { room } = waiting.unit
      const first = rooms.get(room.nid) ?? room
      if (first !== room) this.#refused(room)
      rooms.set(room.nid, first)
      if (room.alive) {
        group.push(waiting)
        events += waiting.unit.events.length
      } else moved.push(waiting)
    }
    this.#waiting = this.#waiting.slice(index)
    return { group, moved }
  }
}
