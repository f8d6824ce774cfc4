/** 2^32 divided by the golden ratio. Multiplication by it spreads consecutive numbers over the highest bits. */
const SPREAD = 0x9e3779b1
const HIGH_SPREAD = 0x85ebca6b

/**
 * Maps integers up to 2^53 to the order in which they were added, and back, in constant time and 16 to 32 bytes for each.
 *
 * Open addressing with linear probing. A slot holds an index plus one, 0 when empty; the numbers themselves are kept once.
 */
export class NumberIndex {
  #size = 0
  #values: Float64Array
  #slots: Int32Array
  /** 32 minus the table's bits: the highest bits of a hash select the slot. */
  #shift: number

  /** @param bits the table starts with room for half of 2^bits numbers */
  constructor(bits = 8) {
    this.#values = new Float64Array(1 << (bits - 1))
    this.#slots = new Int32Array(1 << bits)
    this.#shift = 32 - bits
  }

  get size(): number {
    return this.#size
  }

  get bytes(): number {
    return this.#values.byteLength + this.#slots.byteLength
  }

  /** The number's place in the order of addition; -1 when it was not added. */
  indexOf(value: number): number {
    return this.#slots[this.#slotOf(value)]! - 1
  }

  valueAt(index: number): number {
    return this.#values[index]!
  }

  /** Adds a number that is not there yet, and gives its place. */
  add(value: number): number {
    if (this.#size === this.#values.length) this.#grow()
    const index = this.#size++
    this.#values[index] = value
    this.#slots[this.#slotOf(value)] = index + 1
    return index
  }

  /** The slot that holds the number, or the empty one where it would go. */
  #slotOf(value: number): number {
    const slots = this.#slots
    const values = this.#values
    const mask = slots.length - 1
    let slot = hashOf(value) >>> this.#shift
    for (let held = slots[slot]!; held !== 0 && values[held - 1] !== value; held = slots[slot]!) {
      slot = (slot + 1) & mask
    }
    return slot
  }

  #grow(): void {
    this.#values = grown(this.#values, this.#values.length + 1)
    this.#slots = new Int32Array(this.#slots.length * 2)
    this.#shift--
    for (let index = 0; index < this.#size; index++) this.#slots[this.#slotOf(this.#values[index]!)] = index + 1
  }
}

function hashOf(value: number): number {
  const low = value >>> 0
  const high = (value - low) / 2 ** 32
  return Math.imul(low ^ (low >>> 15) ^ Math.imul(high, HIGH_SPREAD), SPREAD)
}

/** The array, or where it has no room for `length` items, a copy of at least twice its size. */
export function grown<Numbers extends Int32Array | Float64Array>(array: Numbers, length: number): Numbers {
  if (length <= array.length) return array
  const copy = new (array.constructor as new (length: number) => Numbers)(Math.max(length, array.length * 2))
  copy.set(array)
  return copy
}
