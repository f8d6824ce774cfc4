/**
 * An answer put together from pieces that are ready: cached bytes are copied, never parsed or escaped again.
 * Text pieces are JSON already; `value` writes anything else.
 */
export class JsonBytes {
  readonly #pieces: (string | Uint8Array)[] = []
  #length = 0

  /** Text that is JSON, or a part of it. */
  text(json: string): this {
    this.#pieces.push(json)
    this.#length += Buffer.byteLength(json)
    return this
  }

  bytes(json: Uint8Array): this {
    this.#pieces.push(json)
    this.#length += json.length
    return this
  }

  value(value: unknown): this {
    return this.text(JSON.stringify(value))
  }

  /** `"name":` with a comma before it unless it is the first. */
  key(name: string, first = false): this {
    return this.text(`${first ? '' : ','}${JSON.stringify(name)}:`)
  }

  /** All of another's pieces. */
  append(other: JsonBytes): this {
    for (const piece of other.#pieces) this.#pieces.push(piece)
    this.#length += other.#length
    return this
  }

  get length(): number {
    return this.#length
  }

  toBuffer(): Buffer {
    const buffer = Buffer.allocUnsafe(this.#length)
    let offset = 0
    for (const piece of this.#pieces) {
      if (typeof piece === 'string') offset += buffer.write(piece, offset)
      else {
        buffer.set(piece, offset)
        offset += piece.length
      }
    }
    return buffer
  }
}
