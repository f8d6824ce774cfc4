import { SMALL_BODY_BYTES } from '../domain/limits.ts'
import { releaseBytes } from './release-bytes.ts'

/** How much more memory a long body takes at a time. */
const STEP_BYTES = 256 * 1024

/**
 * Collects the pieces of a body. The memory of a long one grows in place with what has come, not with the length that was announced, which
 * costs a client nothing to claim; and `free` gives it back at once. Buffers that are outgrown would wait for the garbage collector.
 */
export class GrowingBytes {
  readonly #memory: ArrayBuffer
  #length = 0

  /** @param most how many bytes may come */
  constructor(most: number) {
    this.#memory = most > SMALL_BODY_BYTES ? new ArrayBuffer(0, { maxByteLength: most }) : new ArrayBuffer(most)
  }

  append(piece: Uint8Array): void {
    const { byteLength, maxByteLength } = this.#memory
    const length = this.#length + piece.length
    if (length > byteLength) this.#memory.resize(Math.max(length, Math.min(byteLength + STEP_BYTES, maxByteLength)))
    new Uint8Array(this.#memory, this.#length, piece.length).set(piece)
    this.#length = length
  }

  /** What has come; `free` leaves it alone. */
  taken(): Buffer {
    if (!this.#memory.resizable) return Buffer.from(this.#memory, 0, this.#length)
    const copy = Buffer.allocUnsafeSlow(this.#length)
    copy.set(new Uint8Array(this.#memory, 0, this.#length))
    return copy
  }

  free(): void {
    if (this.#memory.resizable) this.#memory.resize(0)
  }
}

const EMPTY = Buffer.alloc(0)

/**
 * A body on its way: a single piece as it came, several as one. Of a long body of which more is to come, no piece is kept as it came: between
 * pieces of others that live on, what it leaves free when it grows would be of use to nobody.
 */
export class BodyBytes {
  readonly #most: number
  readonly #isLong: boolean
  #first: Buffer = EMPTY
  #longer: GrowingBytes | undefined

  /**
   * @param most how many bytes may come
   * @param isLong whether the memory of pieces is freed as soon as it is not needed. That of short bodies is not worth it.
   */
  constructor(most: number, isLong: boolean) {
    this.#most = most
    this.#isLong = isLong
  }

  /** @throws RangeError if the system gives no more memory */
  append(piece: Buffer): void {
    if (this.#longer === undefined) {
      const isFirst = this.#first.length === 0
      if (isFirst && !this.#isPartOfMore(piece)) {
        this.#first = piece
        return
      }
      this.#longer = new GrowingBytes(this.#most)
      if (!isFirst) this.#longer.append(this.#first)
      this.discard(this.#first)
    }
    this.#longer.append(piece)
    this.discard(piece)
  }

  #isPartOfMore(piece: Buffer): boolean {
    return this.#isLong && piece.length > SMALL_BODY_BYTES && piece.length < this.#most
  }

  /** All that came. It is the caller's, and `free` leaves it alone. */
  taken(): Buffer {
    const taken = this.#longer?.taken() ?? this.#first
    this.#first = EMPTY
    return taken
  }

  /** Frees a piece that nobody needs. */
  discard(piece: Buffer): void {
    if (this.#isLong && piece.length > 0) releaseBytes(piece)
  }

  free(): void {
    this.#longer?.free()
    this.discard(this.#first)
  }
}
