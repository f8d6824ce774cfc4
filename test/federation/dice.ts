/** Randomness that a seed decides (sfc32). */
export class Dice {
  readonly #state: Uint32Array

  constructor(seed: number) {
    this.#state = Uint32Array.of(seed, 0x9e3779b9, 0x243f6a88, 1)
    for (let round = 0; round < 15; round++) this.#draw()
  }

  #draw(): number {
    const s = this.#state
    const drawn = (s[0]! + s[1]! + s[3]!) >>> 0
    s[3]!++
    s[0] = s[1]! ^ (s[1]! >>> 9)
    s[1] = s[2]! + (s[2]! << 3)
    s[2] = ((s[2]! << 21) | (s[2]! >>> 11)) + drawn
    return drawn
  }

  /** From 0 up to 1, without 1. */
  roll(): number {
    return this.#draw() / 2 ** 32
  }

  below(limit: number): number {
    return Math.floor(this.roll() * limit)
  }

  /** Both ends included. */
  between(low: number, high: number): number {
    return low + this.below(high - low + 1)
  }

  chance(probability: number): boolean {
    return this.roll() < probability
  }

  pick<T>(from: readonly T[]): T {
    if (from.length === 0) throw new RangeError('there is nothing to pick from')
    return from[this.below(from.length)]!
  }

  shuffled<T>(items: readonly T[]): T[] {
    const shuffled = [...items]
    for (let at = shuffled.length - 1; at > 0; at--) {
      const other = this.below(at + 1)
      const moved = shuffled[at]!
      shuffled[at] = shuffled[other]!
      shuffled[other] = moved
    }
    return shuffled
  }

  /** One of the keys, each as likely as its weight says. */
  weighted<Name extends string>(weights: Readonly<Record<Name, number>>): Name {
    const names = Object.keys(weights) as Name[]
    let left = this.roll() * names.reduce((sum, name) => sum + weights[name], 0)
    for (const name of names) {
      left -= weights[name]
      if (left < 0) return name
    }
    return names.at(-1)!
  }

  bytes(count: number): Buffer {
    return Buffer.from(Array.from({ length: count }, () => this.below(256)))
  }
}
