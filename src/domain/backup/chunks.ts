/** A stream of one chunk. */
export async function* once(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes
}

/** A stream as one piece. */
export async function joined(source: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of source) chunks.push(chunk)
  return Buffer.concat(chunks)
}

/** The same bytes in chunks of at most so many. */
export async function* inPieces(source: AsyncIterable<Buffer>, size: number): AsyncGenerator<Buffer> {
  for await (const chunk of source) for (let at = 0; at < chunk.length; at += size) yield chunk.subarray(at, at + size)
}
