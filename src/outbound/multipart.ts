/** The body is not valid multipart. */
export class MultipartError extends Error {}

export interface Part {
  /** Names in lower case; the first value if one repeats. */
  readonly headers: ReadonlyMap<string, string>
  /** Read it to its end before the next part. */
  readonly body: AsyncIterable<Buffer>
}

const MAX_PART_HEADER_BYTES = 16_384
const LINE = Buffer.from('\r\n')
const BLANK_LINE = Buffer.from('\r\n\r\n')

/** The boundary in a `Content-Type` of `multipart/mixed` (RFC 2046, 5.1.1); undefined for any other type. */
export function boundaryOf(contentType: string | undefined): string | undefined {
  if (contentType === undefined || !/^\s*multipart\/mixed\s*;/i.test(contentType)) return undefined
  const [, quoted, bare] = /;\s*boundary\s*=\s*(?:"([^"]{1,70})"|([^\s;"]{1,70}))/i.exec(contentType) ?? []
  return quoted ?? bare
}

/**
 * The parts of a multipart body (RFC 2046, 5.1.1) as streams; none is held in memory.
 * @throws MultipartError if the body ends early or is malformed
 */
export async function* partsOf(body: AsyncIterable<Buffer>, boundary: string): AsyncGenerator<Part> {
  const text = new Incoming(body)
  const delimiter = Buffer.from(`\r\n--${boundary}`)
  try {
    // The preamble before the first boundary has no meaning.
    for await (const _preamble of text.until(delimiter));
    while (!(await text.startsWith('--'))) {
      const headers = readHeaders(await text.upTo(BLANK_LINE, MAX_PART_HEADER_BYTES))
      yield { headers, body: text.until(delimiter) }
    }
  } finally {
    await text.close()
  }
}

function readHeaders(block: Buffer): Map<string, string> {
  const headers = new Map<string, string>()
  for (const line of block.toString('utf8').split('\r\n')) {
    const colon = line.indexOf(':')
    const name = line.slice(0, Math.max(colon, 0)).trim().toLowerCase()
    if (name !== '' && !headers.has(name)) headers.set(name, line.slice(colon + 1).trim())
  }
  return headers
}

/** A stream of bytes whose chunks may end anywhere. */
class Incoming {
  readonly #source: AsyncIterator<Buffer>
  /** Begins with a line end, so that a boundary at the very beginning is found too. */
  #pending: Buffer = LINE

  constructor(source: AsyncIterable<Buffer>) {
    this.#source = source[Symbol.asyncIterator]()
  }

  /** The bytes up to a mark; skips the mark. */
  async *until(mark: Buffer): AsyncGenerator<Buffer> {
    for (;;) {
      const at = this.#pending.indexOf(mark)
      const end = at === -1 ? this.#pending.length - mark.length + 1 : at
      const before = this.#pending.subarray(0, Math.max(end, 0))
      this.#pending = this.#pending.subarray(at === -1 ? before.length : at + mark.length)
      if (before.length > 0) yield before
      if (at !== -1) return
      await this.#more()
    }
  }

  async upTo(mark: Buffer, maxBytes: number): Promise<Buffer> {
    const chunks: Buffer[] = []
    let size = 0
    for await (const chunk of this.until(mark)) {
      size += chunk.length
      if (size > maxBytes) throw new MultipartError('the header of a part is too long')
      chunks.push(chunk)
    }
    return Buffer.concat(chunks)
  }

  async startsWith(text: string): Promise<boolean> {
    while (this.#pending.length < text.length) await this.#more()
    return this.#pending.toString('latin1', 0, text.length) === text
  }

  async close(): Promise<void> {
    await this.#source.return?.()
  }

  async #more(): Promise<void> {
    const { value, done } = await this.#source.next()
    if (done) throw new MultipartError('it ends within a part')
    this.#pending = this.#pending.length === 0 ? value : Buffer.concat([this.#pending, value])
  }
}
