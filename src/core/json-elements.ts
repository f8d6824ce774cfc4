/** A JSON text, split: the elements of some lists, each as its bytes, and the text around them. */
export interface SplitJson {
  /** By the name of the list; the last of several of one name counts, as for `JSON.parse`. */
  readonly lists: ReadonlyMap<string, readonly Buffer[]>
  /** The text with these lists empty. */
  readonly rest: Buffer
}

const QUOTE = 0x22
const COMMA = 0x2c
const COLON = 0x3a
const BACKSLASH = 0x5c
const LIST_OPENS = 0x5b
const LIST_ENDS = 0x5d
const OBJECT_OPENS = 0x7b
const OBJECT_ENDS = 0x7d

/**
 * Reads a long JSON text as a stream and cuts some of its lists into elements, without parsing them. The lists are members of the outermost
 * object, or of an object in the outermost list. It does not validate: errors show when the elements and the rest are parsed.
 */
export class ElementSplitter {
  readonly #names: ReadonlySet<string>
  readonly #lists = new Map<string, Buffer[]>()
  readonly #rest: Buffer[] = []
  /** The chunks of the part that is being read: an element, or the rest. */
  #open: Buffer[] = []
  /** The bytes of the last string outside the lists: it may be the name of a member. */
  #string: Buffer[] = []
  #name: string | undefined
  #list: Buffer[] | undefined
  #depth = 0
  /** The depth of the members that may be lists: in an object, or in an object in a list. */
  #memberDepth = 0
  #isInString = false
  #isEscaped = false
  /** How many elements and bytes of the rest there are. */
  elements = 0
  restBytes = 0

  constructor(names: Iterable<string>) {
    this.#names = new Set(names)
  }

  push(chunk: Buffer): void {
    let from = 0
    let at = this.#isInString ? this.#endString(chunk, 0) : 0
    while (at < chunk.length) {
      const code = chunk[at++]!
      if (code === QUOTE) {
        this.#isInString = true
        if (!this.#list) this.#string = []
        at = this.#endString(chunk, at)
      } else if (code === OBJECT_OPENS || code === LIST_OPENS) {
        this.#enter(code)
        if (!this.#opensList(code)) continue
        this.#keepRest(chunk.subarray(from, at))
        from = at
      } else if (code === COMMA) {
        if (this.#list && this.#depth === this.#memberDepth + 1) {
          this.#endElement(chunk.subarray(from, at - 1))
          from = at
        } else if (this.#depth === this.#memberDepth) this.#name = undefined
      } else if (code === COLON) {
        if (this.#depth === this.#memberDepth) this.#name = Buffer.concat(this.#string).toString('utf8')
      } else if (code === LIST_ENDS || code === OBJECT_ENDS) {
        this.#depth--
        if (!this.#list || this.#depth !== this.#memberDepth) continue
        this.#endElement(chunk.subarray(from, at - 1))
        this.#list = undefined
        from = at - 1
      }
    }
    if (this.#list) this.#open.push(chunk.subarray(from))
    else this.#keepRest(chunk.subarray(from))
  }

  /** Skips to the end of the open string. This is the hot path: most of a text is strings, most of them short and plain. */
  #endString(chunk: Buffer, from: number): number {
    let isEscaped = this.#isEscaped
    let at = from
    for (; at < chunk.length; at++) {
      const code = chunk[at]!
      if (isEscaped) isEscaped = false
      else if (code === BACKSLASH) isEscaped = true
      else if (code === QUOTE) break
    }
    this.#isEscaped = isEscaped
    this.#isInString = at === chunk.length
    if (!this.#list) this.#string.push(chunk.subarray(from, at))
    return at + 1
  }

  end(): SplitJson {
    return { lists: this.#lists, rest: Buffer.concat(this.#rest) }
  }

  #enter(code: number): void {
    if (this.#memberDepth === 0) this.#memberDepth = code === OBJECT_OPENS ? 1 : 2
    this.#depth++
  }

  #opensList(code: number): boolean {
    if (code !== LIST_OPENS || this.#list || this.#depth !== this.#memberDepth + 1) return false
    const name = this.#name
    if (name === undefined || !this.#names.has(name)) return false
    this.#list = []
    this.#lists.set(name, this.#list)
    return true
  }

  #endElement(last: Buffer): void {
    const bytes = this.#open.length === 0 ? last : Buffer.concat([...this.#open, last])
    this.#open = []
    if (this.#list!.length === 0 && bytes.every(isSpace)) return
    this.#list!.push(bytes)
    this.elements++
  }

  #keepRest(bytes: Buffer): void {
    if (bytes.length === 0) return
    this.#rest.push(bytes)
    this.restBytes += bytes.length
  }
}

function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09
}
