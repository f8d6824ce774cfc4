import { writeJson } from './large-integers.ts'

/** A part that is made only when it is about to be sent. */
type Later = () => AsyncIterable<JsonBytes>

/**
 * Builds an answer from ready pieces: cached bytes are copied, never parsed or escaped again.
 * Text pieces are JSON already; `value` writes anything else.
 */
export class JsonBytes {
  readonly #pieces: (string | Uint8Array | Later)[] = []
  #length = 0
  #isWhole = true

  /** Text that is JSON, or a part of it. */
  text(json: string): this {
    const last = this.#pieces.length - 1
    const before = this.#pieces[last]
    if (typeof before === 'string') this.#pieces[last] = before + json
    else this.#pieces.push(json)
    this.#length += Buffer.byteLength(json)
    return this
  }

  bytes(json: Uint8Array): this {
    this.#pieces.push(json)
    this.#length += json.length
    return this
  }

  value(value: unknown): this {
    return this.text(writeJson(value))
  }

  /** `"name":` with a comma before it unless it is the first. */
  key(name: string, first = false): this {
    return this.text(`${first ? '' : ','}${JSON.stringify(name)}:`)
  }

  /** Adds all pieces of another answer. */
  append(other: JsonBytes): this {
    for (const piece of other.#pieces) this.#pieces.push(piece)
    this.#length += other.#length
    this.#isWhole &&= other.#isWhole
    return this
  }

  /** Adds a large part, which is made only after everything before it was sent. Such an answer can be read only by `chunks`. */
  later(part: Later): this {
    this.#pieces.push(part)
    this.#isWhole = false
    return this
  }

  get isEmpty(): boolean {
    return this.#pieces.length === 0
  }

  /** Whether there are no parts that are made later. */
  get isWhole(): boolean {
    return this.#isWhole
  }

  /** Bytes of the ready pieces. */
  get length(): number {
    return this.#length
  }

  /** All of it: as text where it is nothing but text, since a short text is sent with less work than bytes. */
  whole(): string | Buffer {
    const [first = ''] = this.#pieces
    return this.#pieces.length < 2 && typeof first === 'string' ? first : this.toBuffer()
  }

  /** @param isKept for a buffer that is cached: allocates it alone, since a small buffer is otherwise a slice of 8 KiB and keeps all of it alive */
  toBuffer(isKept = false): Buffer {
    const buffer = isKept ? Buffer.allocUnsafeSlow(this.#length) : Buffer.allocUnsafe(this.#length)
    let offset = 0
    for (const piece of this.#pieces) {
      if (typeof piece === 'string') offset += buffer.write(piece, offset)
      else if (typeof piece === 'function') throw new Error('a part of this is still to be made')
      else {
        buffer.set(piece, offset)
        offset += piece.length
      }
    }
    return buffer
  }

  /** The whole answer, in chunks of about so many bytes; each is made on demand. */
  async *chunks(bytes: number): AsyncGenerator<Buffer> {
    let gathered = new JsonBytes()
    for (const piece of this.#pieces) {
      if (typeof piece === 'function') {
        if (gathered.length > 0) yield gathered.toBuffer()
        gathered = new JsonBytes()
        for await (const part of piece()) yield* part.chunks(bytes)
        continue
      }
      gathered.#pieces.push(piece)
      gathered.#length += typeof piece === 'string' ? Buffer.byteLength(piece) : piece.length
      if (gathered.length < bytes) continue
      yield gathered.toBuffer()
      gathered = new JsonBytes()
    }
    if (gathered.length > 0) yield gathered.toBuffer()
  }
}

/** Text as bytes for a cache: see {@link JsonBytes.toBuffer}. */
export function keptBytes(text: string): Buffer {
  const buffer = Buffer.allocUnsafeSlow(Buffer.byteLength(text))
  buffer.write(text)
  return buffer
}
