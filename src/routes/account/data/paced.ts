import { ARCHIVE_BYTES_PER_SECOND, ARCHIVE_PAUSE_MS } from '../../../domain/limits/oauth.ts'

/** Passes pieces on, and calls `end` when they are taken too slowly: few can be under way, and nobody may keep the place of others. */
export async function* paced(pieces: AsyncIterable<Buffer>, end: () => void): AsyncGenerator<Buffer> {
  let leftMs = ARCHIVE_PAUSE_MS
  for await (const piece of pieces) {
    leftMs += (1000 * piece.length) / ARCHIVE_BYTES_PER_SECOND
    const since = performance.now()
    const timer = setTimeout(end, leftMs).unref()
    try {
      yield piece
    } finally {
      clearTimeout(timer)
    }
    leftMs = Math.min(leftMs - (performance.now() - since), ARCHIVE_PAUSE_MS)
  }
}
