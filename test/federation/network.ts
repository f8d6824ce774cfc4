import type { ServerName } from '../../src/core/ids.ts'
import type { Dice } from './dice.ts'

/** How a network treats what is sent. */
export interface Conditions {
  /** Longest time on the way, in virtual milliseconds. Messages overtake each other. */
  readonly maxDelayMs: number
  /** The share of messages that never arrive. */
  readonly loss: number
  /** The share that arrives twice. */
  readonly duplication: number
  /** The share of questions without an answer. */
  readonly silence: number
}

export const CALM: Conditions = { maxDelayMs: 20, loss: 0, duplication: 0, silence: 0 }
export const ROUGH: Conditions = { maxDelayMs: 2_000, loss: 0.15, duplication: 0.1, silence: 0.05 }

interface Due {
  readonly at: number
  /** Of two at the same time the first to be sent. */
  readonly order: number
  run(): Promise<void>
}

/**
 * A network in virtual time: nothing happens until somebody lets time pass, and then one thing after the other. What is sent
 * while its servers are parted, or would arrive then, is lost for good.
 */
export class Network {
  now: number
  conditions: Conditions = CALM
  readonly #dice: Dice
  #queue: Due[] = []
  #sent = 0
  #sides = new Map<ServerName, number>()

  constructor(dice: Dice, now: number) {
    this.#dice = dice
    this.now = now
  }

  get isParted(): boolean {
    return this.#sides.size > 0
  }

  areLinked(one: ServerName, other: ServerName): boolean {
    return this.#sides.get(one) === this.#sides.get(other)
  }

  /** Servers of different groups do not reach each other any more. */
  part(groups: readonly (readonly ServerName[])[]): void {
    this.#sides = new Map(groups.flatMap((group, side) => group.map((server) => [server, side] as const)))
  }

  heal(): void {
    this.#sides.clear()
  }

  /** Sends a message, which may arrive once, twice or never. */
  send(from: ServerName, to: ServerName, arrive: () => Promise<void>): void {
    if (!this.areLinked(from, to) || this.#dice.chance(this.conditions.loss)) return
    const copies = this.#dice.chance(this.conditions.duplication) ? 2 : 1
    for (let copy = 0; copy < copies; copy++) {
      this.#queue.push({
        at: this.now + this.#dice.between(1, this.conditions.maxDelayMs),
        order: this.#sent++,
        run: async () => (this.areLinked(from, to) ? arrive() : undefined),
      })
    }
    this.#queue.sort((one, other) => one.at - other.at || one.order - other.order)
  }

  /** Asks another server and waits for the answer, in no time; `silence` is what one hears where none comes. */
  async ask<Answer>(from: ServerName, of: ServerName, answer: () => Promise<Answer>, silence: Answer): Promise<Answer> {
    if (!this.areLinked(from, of) || this.#dice.chance(this.conditions.silence)) return silence
    return answer()
  }

  /** Lets time pass: what is due arrives. */
  async pass(ms: number): Promise<void> {
    const end = this.now + ms
    while (this.#queue[0] !== undefined && this.#queue[0].at <= end) await this.#arriveNext()
    this.now = end
  }

  /** Lets time pass until nothing is on its way. */
  async settle(): Promise<void> {
    while (this.#queue.length > 0) await this.#arriveNext()
  }

  async #arriveNext(): Promise<void> {
    const due = this.#queue.shift()!
    this.now = Math.max(this.now, due.at)
    await due.run()
  }
}
