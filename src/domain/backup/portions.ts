const NEWLINE = 10

/** Whole rows of a table: lines in the text form of COPY. */
export interface Portion {
  readonly bytes: Buffer
  readonly rows: number
}

/** Cuts a stream of lines into portions of about `size` bytes, each of whole lines. */
export async function* portionsOf(lines: AsyncIterable<Buffer>, size: number): AsyncGenerator<Portion> {
  let chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of lines) {
    chunks.push(chunk)
    bytes += chunk.length
    const end = bytes < size ? -1 : chunk.lastIndexOf(NEWLINE)
    if (end === -1) continue
    const rest = chunk.subarray(end + 1)
    chunks[chunks.length - 1] = chunk.subarray(0, end + 1)
    yield portionOf(Buffer.concat(chunks, bytes - rest.length))
    chunks = rest.length === 0 ? [] : [rest]
    bytes = rest.length
  }
  if (bytes > 0) yield portionOf(Buffer.concat(chunks, bytes))
}

const portionOf = (bytes: Buffer): Portion => ({ bytes, rows: countLines(bytes) })

export function countLines(bytes: Buffer): number {
  let count = 0
  for (let at = bytes.indexOf(NEWLINE); at !== -1; at = bytes.indexOf(NEWLINE, at + 1)) count++
  return count
}
