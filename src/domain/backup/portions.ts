const NEWLINE = 10

/** A part of a stream: as a rule whole rows of a table, lines in the text form of COPY. */
export interface Portion {
  /** To be read to their end before the next portion is asked for. */
  readonly chunks: AsyncIterable<Buffer>
  /** What was read of it so far. */
  readonly bytes: number
  readonly lines: number
}

/**
 * Cuts a stream into portions of about `size` bytes, none of them empty, and holds none in memory.
 *
 * @param endIn where a portion may end in a chunk: behind its last whole line, unless it is told otherwise; 0 for nowhere
 */
export async function* portionsOf(
  source: AsyncIterable<Buffer>,
  size: number,
  endIn: (chunk: Buffer) => number = (chunk) => chunk.lastIndexOf(NEWLINE) + 1,
): AsyncGenerator<Portion> {
  const reader = source[Symbol.asyncIterator]()
  const read = async (): Promise<Buffer | undefined> => {
    const { done, value } = await reader.next()
    return done === true ? undefined : value
  }

  async function* upToSize(portion: { bytes: number; lines: number }): AsyncGenerator<Buffer> {
    while (next !== undefined) {
      const end = portion.bytes + next.length < size ? 0 : endIn(next)
      const chunk = end === 0 ? next : next.subarray(0, end)
      const rest = next.subarray(chunk.length)
      portion.bytes += chunk.length
      portion.lines += countLines(chunk)
      yield chunk
      next = rest.length > 0 ? rest : await read()
      if (end > 0) return
    }
  }

  let next: Buffer | undefined
  try {
    next = await read()
    while (next !== undefined) {
      const portion = { bytes: 0, lines: 0 }
      yield Object.assign(portion, { chunks: upToSize(portion) })
    }
  } finally {
    await reader.return?.()
  }
}

export function countLines(bytes: Buffer): number {
  let count = 0
  for (let at = bytes.indexOf(NEWLINE); at !== -1; at = bytes.indexOf(NEWLINE, at + 1)) count++
  return count
}
