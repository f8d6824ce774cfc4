import { FEWEST_PLACED_BYTES, type Place } from '../../../core/json-bytes.ts'

/**
 * Places for large answers, which are used again. The system gives a process new memory page by page, while it is written: that takes longer
 * than to write the answer. And so much new memory has the engine collect garbage in the middle of the next answers.
 */
export interface AnswerPlaces {
  /** A place for an answer of at most so many bytes; undefined for one that is too short. */
  take(bytes: number): Place | undefined
}

/** More are not kept. */
const MAX_KEPT_BYTES = 16 * 1024 * 1024
/** Those that nobody takes within this time go. */
const KEPT_FOR_MS = 5_000
/** An answer takes no place that is more than so many times as large. */
const MOST_LARGER = 2

export function createAnswerPlaces({ keptForMs = KEPT_FOR_MS } = {}): AnswerPlaces {
  let free: Buffer[] = []
  let keptBytes = 0
  let isTimed = false

  function forget(): void {
    isTimed = false
    free = []
    keptBytes = 0
  }

  function leave(bytes: Buffer): void {
    if (keptBytes + bytes.length > MAX_KEPT_BYTES) return
    free.push(bytes)
    keptBytes += bytes.length
    if (!isTimed) setTimeout(forget, keptForMs).unref()
    isTimed = true
  }

  function takeFree(bytes: number): Buffer | undefined {
    const index = free.findLastIndex(({ length }) => length >= bytes && length <= MOST_LARGER * bytes)
    const [found] = index < 0 ? [] : free.splice(index, 1)
    keptBytes -= found?.length ?? 0
    return found
  }

  return {
    take(length) {
      if (length < FEWEST_PLACED_BYTES) return undefined
      const bytes = takeFree(length) ?? Buffer.allocUnsafeSlow(length)
      let isLeft = false
      return {
        bytes,
        leave() {
          if (!isLeft) leave(bytes)
          isLeft = true
        },
      }
    },
  }
}
