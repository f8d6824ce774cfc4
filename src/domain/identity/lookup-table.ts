import { LOOKUP_HASH_BYTES } from '../../core/lookup-hash.ts'

/**
 * Users by the hashes of their addresses, as compactly as whole hashes allow: a million take 70 MB, which the garbage collector does not
 * scan.
 *
 * Hashes are split into parts by their first byte, so that growing moves only one part.
 */
export class LookupTable {
  readonly #parts = new Map<number, Part>()
  readonly #names = new Names()
  readonly #key = new Uint32Array(WORDS)
  /** The hash that the methods work on: write its bytes here first. */
  readonly key = new Uint8Array(this.#key.buffer)
  #size = 0

  /** How many hashes there are, including those of removed bindings. */
  get size(): number {
    return this.#size
  }

  /** @param user UTF-8, as many bytes as a user id may have */
  set(user: Uint8Array): void {
    const part = this.#part()
    let place = part.find(this.#key)
    if (place < 0) {
      place = part.add(this.#key)
      this.#size++
    }
    part.names[place] = this.#names.add(user)
  }

  delete(): void {
    const part = this.#parts.get(this.key[0] as number)
    const place = part?.find(this.#key) ?? -1
    if (place >= 0) part!.names[place] = NOBODY
  }

  find(): string | undefined {
    const part = this.#parts.get(this.key[0] as number)
    if (part === undefined) return undefined
    const place = part.find(this.#key)
    const name = place < 0 ? NOBODY : (part.names[place] as number)
    return name === NOBODY ? undefined : this.#names.read(name)
  }

  #part(): Part {
    const first = this.key[0] as number
    let part = this.#parts.get(first)
    if (part === undefined) {
      part = new Part()
      this.#parts.set(first, part)
    }
    return part
  }
}

const WORDS = LOOKUP_HASH_BYTES / 4
const NOBODY = 0
const FIRST_PLACES = 8
const GROWTH = 1.25

/** Hashes one after another, and an open-addressed table of their places, keyed by their second word and at most three quarters full. */
class Part {
  #count = 0
  #hashes = new Uint32Array(FIRST_PLACES * WORDS)
  /** A place counted from 1, or 0. Sixteen bits are enough: there are 256 parts, and fewer than 2^24 hashes. */
  #slots = new Uint16Array(2 * FIRST_PLACES)
  /** The offset of each place's user name. */
  names = new Uint32Array(FIRST_PLACES)

  find(key: Uint32Array): number {
    const slots = this.#slots
    const mask = slots.length - 1
    for (let slot = (key[1] as number) & mask; ; slot = (slot + 1) & mask) {
      const place = (slots[slot] as number) - 1
      if (place < 0 || this.#isAt(place, key)) return place
    }
  }

  /** Adds a new hash and returns its place. */
  add(key: Uint32Array): number {
    const place = this.#count++
    if (place === this.names.length) this.#growPlaces()
    this.#hashes.set(key, place * WORDS)
    if (this.#count * 4 > this.#slots.length * 3) this.#growSlots()
    else this.#enter(place)
    return place
  }

  #isAt(place: number, key: Uint32Array): boolean {
    const start = place * WORDS
    for (let word = 1; word < WORDS; word++) if (this.#hashes[start + word] !== key[word]) return false
    return this.#hashes[start] === key[0]
  }

  #enter(place: number): void {
    const slots = this.#slots
    const mask = slots.length - 1
    let slot = (this.#hashes[place * WORDS + 1] as number) & mask
    while (slots[slot] !== 0) slot = (slot + 1) & mask
    slots[slot] = place + 1
  }

  #growPlaces(): void {
    const places = Math.ceil(this.names.length * GROWTH)
    const [hashes, names] = [this.#hashes, this.names]
    this.#hashes = new Uint32Array(places * WORDS)
    this.#hashes.set(hashes)
    this.names = new Uint32Array(places)
    this.names.set(names)
  }

  #growSlots(): void {
    this.#slots = new Uint16Array(2 * this.#slots.length)
    for (let place = 0; place < this.#count; place++) this.#enter(place)
  }
}

const CHUNK_BYTES = 1 << 20

/** Texts of at most 64 KiB, found by their offset. A replaced text stays until everything is dropped. */
class Names {
  readonly #chunks: Buffer[] = []
  // The first byte stays empty: no name has offset 0.
  #end = 1
  #left = 0

  add(text: Uint8Array): number {
    const bytes = text.length + 2
    if (bytes > this.#left) this.#grow(bytes)
    const at = this.#end
    const chunk = this.#chunks.at(-1) as Buffer
    const start = at % CHUNK_BYTES
    chunk.writeUInt16LE(text.length, start)
    chunk.set(text, start + 2)
    this.#end += bytes
    this.#left -= bytes
    return at
  }

  read(at: number): string {
    const chunk = this.#chunks[Math.floor(at / CHUNK_BYTES)] as Buffer
    const start = at % CHUNK_BYTES
    return chunk.toString('utf8', start + 2, start + 2 + chunk.readUInt16LE(start))
  }

  #grow(atLeast: number): void {
    const start = this.#chunks.length * CHUNK_BYTES
    if (start + CHUNK_BYTES > 2 ** 32 || atLeast >= CHUNK_BYTES) throw new RangeError('too many names')
    this.#chunks.push(Buffer.allocUnsafeSlow(CHUNK_BYTES))
    this.#end = Math.max(start, 1)
    this.#left = start + CHUNK_BYTES - this.#end
  }
}
