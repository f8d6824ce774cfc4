import { writeJson } from './large-integers.ts'

/** A part that is made only when it is about to be sent. */
type Later = () => AsyncIterable<JsonBytes>

/** Longer answers of text alone become bytes. */
const MAX_TEXT = 16 * 1024
/** Longer pieces are kept as they are, not copied. */
const MAX_COPIED_BYTES = 16 * 1024
/** Shorter texts are copied faster by a loop than by a call of the engine. */
const SHORT_TEXT = 64

/**
 * Where the answer that is being written puts its pieces, so that thousands of them make no objects. When another answer is written, or when
 * it is full, its content becomes a piece of the answer that wrote it.
 */
const desk = Buffer.allocUnsafeSlow(256 * 1024)
/** Shorter answers need no place of their own. */
export const FEWEST_PLACED_BYTES = desk.length + 1
let written = 0
let writer: JsonBytes | undefined

const NO_PIECES: readonly (Buffer | Later)[] = []

/** Where one answer at a time is written. */
export interface Place {
  readonly bytes: Buffer
  /** Nobody reads it any more: another answer may be written there. */
  leave(): void
}

/**
 * Builds an answer from ready pieces: cached bytes are copied, never parsed or escaped again.
 * Text pieces are JSON already; `value` writes anything else.
 */
export class JsonBytes {
  /** The whole answer, while it is short and nothing but text. */
  #text: string | undefined = ''
  /** Most answers are text alone, and have none. */
  #pieces: readonly (Buffer | Later)[] = NO_PIECES
  #length = 0
  #isWhole = true
  /** Where it is written instead of on the desk, for as long as it fits, and how much of that is written. */
  #own: Buffer | undefined
  #ownWritten = 0
  readonly #place: Place | undefined

  /** @param place for a large answer whose length is about known: it is written in one place then, and not moved any more */
  constructor(place?: Place) {
    if (place === undefined) return
    this.#text = undefined
    this.#place = place
    this.#own = place.bytes
  }

  /** To be called when nobody reads it any more, nor what was made of it. */
  release(): void {
    this.#place?.leave()
  }

  /** Text that is JSON, or a part of it. */
  text(json: string): this {
    if (this.#text === undefined) return this.#write(json)
    this.#text += json
    if (this.#text.length > MAX_TEXT) this.#becomeBytes()
    return this
  }

  /** @param isKept whether it stays as it is, so that the answer may hold a large piece without a copy */
  bytes(json: Uint8Array, isKept = true): this {
    this.#becomeBytes()
    this.#length += json.length
    if (this.#fitsOwn(json.length)) {
      this.#own!.set(json, this.#ownWritten)
      this.#ownWritten += json.length
      return this
    }
    if (json.length > MAX_COPIED_BYTES) {
      this.#clearDesk()
      this.#push(isKept ? Buffer.from(json.buffer, json.byteOffset, json.length) : Buffer.from(json))
      return this
    }
    this.#takeDesk(json.length)
    desk.set(json, written)
    written += json.length
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
    if (other.#text !== undefined) return this.text(other.#text)
    other.#clearDesk()
    this.#becomeBytes()
    for (const piece of other.#pieces) {
      if (typeof piece === 'function') this.later(piece)
      else this.bytes(piece)
    }
    return this
  }

  /** Adds a large part, which is made only after everything before it was sent. Such an answer can be read only by `chunks`. */
  later(part: Later): this {
    this.#becomeBytes()
    this.#clearDesk()
    this.#push(part)
    this.#isWhole = false
    return this
  }

  get isEmpty(): boolean {
    return this.#text === undefined ? this.#length === 0 && this.#isWhole : this.#text === ''
  }

  /** Whether there are no parts that are made later. */
  get isWhole(): boolean {
    return this.#isWhole
  }

  /** Bytes of the ready pieces. */
  get length(): number {
    return this.#text === undefined ? this.#length : Buffer.byteLength(this.#text)
  }

  /** All of it: as text where it is short and nothing but text, which is sent with less work than bytes. */
  whole(): string | Buffer {
    return this.#text ?? this.toBuffer()
  }

  /** All of it. Its parts may be in use elsewhere: never change it. */
  toBuffer(): Buffer {
    if (this.#text !== undefined) return Buffer.from(this.#text)
    if (!this.#isWhole) throw new Error('a part of this is still to be made')
    this.#clearDesk()
    return joined(this.#pieces as Buffer[], this.#length)
  }

  /** The whole answer, in chunks of about so many bytes; each is made on demand. */
  async *chunks(bytes: number): AsyncGenerator<Buffer> {
    this.#becomeBytes()
    this.#clearDesk()
    let gathered: Buffer[] = []
    let length = 0
    for (const whole of this.#pieces) {
      let piece = whole
      for (; typeof piece !== 'function' && piece.length > 2 * bytes; piece = piece.subarray(bytes)) {
        yield joined([...gathered, piece.subarray(0, bytes)], length + bytes)
        gathered = []
        length = 0
      }
      if (typeof piece !== 'function') {
        gathered.push(piece)
        length += piece.length
      }
      if (length > 0 && (typeof piece === 'function' || length >= bytes)) {
        yield joined(gathered, length)
        gathered = []
        length = 0
      }
      if (typeof piece === 'function') for await (const part of piece()) yield* part.chunks(bytes)
    }
    if (length > 0) yield joined(gathered, length)
  }

  #push(piece: Buffer | Later): void {
    if (this.#pieces === NO_PIECES) this.#pieces = [piece]
    else (this.#pieces as (Buffer | Later)[]).push(piece)
  }

  #becomeBytes(): void {
    if (this.#text === undefined) return
    const text = this.#text
    this.#text = undefined
    this.#write(text)
  }

  #write(text: string): this {
    const most = 3 * text.length
    if (this.#fitsOwn(most)) {
      const length = copy(text, this.#own!, this.#ownWritten)
      this.#ownWritten += length
      this.#length += length
      return this
    }
    if (most > desk.length) {
      this.bytes(Buffer.from(text))
      return this
    }
    this.#takeDesk(most)
    const length = copy(text, desk, written)
    written += length
    this.#length += length
    return this
  }

  /** Whether so many bytes fit into the place of its own. If not, that is done with. */
  #fitsOwn(bytes: number): boolean {
    if (this.#own === undefined) return false
    if (this.#ownWritten + bytes <= this.#own.length) return true
    this.#leaveOwn()
    return false
  }

  #leaveOwn(): void {
    if (this.#own === undefined) return
    if (this.#ownWritten > 0) this.#push(this.#own.subarray(0, this.#ownWritten))
    this.#own = undefined
  }

  /** Makes room for so many bytes. */
  #takeDesk(bytes: number): void {
    if (writer !== undefined && (writer !== this || written + bytes > desk.length)) writer.#clearDesk()
    writer = this
  }

  /** Leaves the desk too: what has been read or given up is kept alive by nothing here. */
  #clearDesk(): void {
    this.#leaveOwn()
    if (writer !== this) return
    writer = undefined
    if (written === 0) return
    this.#push(Buffer.from(desk.subarray(0, written)))
    written = 0
  }
}

function joined(pieces: readonly Buffer[], length: number): Buffer {
  return pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces, length)
}

/** Copies a text to a place and returns its length in bytes. */
function copy(text: string, to: Buffer, at: number): number {
  if (text.length >= SHORT_TEXT) return to.write(text, at)
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index)
    if (code > 127) return to.write(text, at)
    to[at + index] = code
  }
  return text.length
}

/**
 * The same text in one piece. One that was put together of others is a tree of these, which takes several times the memory of the text:
 * do this with what stays.
 */
export function wholeText(text: string): string {
  // The engine joins the pieces to look at a character.
  return Number.isNaN(text.charCodeAt(0)) ? '' : text
}
