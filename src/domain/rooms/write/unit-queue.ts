import type { Room } from '../room/room.ts'
import type { Outcome, Unit } from './unit.ts'

/** A unit whose caller waits for its outcome. */
export interface Waiting {
  readonly unit: Unit
  readonly resolve: (outcome: Outcome) => void
  readonly reject: (error: unknown) => void
}

const MAX_EVENTS_PER_BATCH = 512

/** The units that wait to be written, in order, and the answers for those that were. */
export class UnitQueue {
  readonly #refused: (room: Room) => void
  #waiting: Waiting[] = []
  /** Answers of the current batch. They go out after its position is published, so that a caller that reads at once finds its event. */
  #answers: (() => void)[] = []

  /** @param refused called for each room whose unit cannot be written as it is */
  constructor(refused: (room: Room) => void) {
    this.#refused = refused
  }

  get isEmpty(): boolean {
    return this.#waiting.length === 0
  }

  add(waiting: Waiting): void {
    this.#waiting.push(waiting)
  }

  /**
   * Takes what fits into one commit: whole units, in order. Sends units on a dead room back to be built again. Does the same with units on
   * a second copy of a room while the first copy still has units here, because a batch moves a head once.
   */
  take(): Waiting[] {
    const taken: Waiting[] = []
    const rooms = new Map<number, Room>()
    let events = 0
    let index = 0
    for (; index < this.#waiting.length && events < MAX_EVENTS_PER_BATCH; index++) {
      const waiting = this.#waiting[index]!
      const { room } = waiting.unit
      const first = rooms.get(room.nid) ?? room
      if (first !== room) this.#refused(room)
      rooms.set(room.nid, first)
      if (room.alive) {
        taken.push(waiting)
        events += waiting.unit.events.length
      } else this.#answers.push(() => waiting.resolve({ kind: 'moved' }))
    }
    this.#waiting = this.#waiting.slice(index)
    return taken
  }

  answerLater(answer: () => void): void {
    this.#answers.push(answer)
  }

  takeAnswers(): readonly (() => void)[] {
    const answers = this.#answers
    this.#answers = []
    return answers
  }
}
