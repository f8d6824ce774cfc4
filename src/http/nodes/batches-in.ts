import type { Logger } from 'pino'
import { MAX_BATCHED_BYTES_IN_ALL, MAX_BATCHED_IN_ALL } from '../../domain/limits/cluster.ts'
import type { BatchDesk } from './batch-desk.ts'
import { type BatchedAnswer, bytesOf, requestsIn } from './batched.ts'

/** Has the requests answered that other nodes pass on in batches: so many at a time, of all nodes together. */
export interface BatchesIn {
  /**
   * Has those of a batch answered, which begin in their order.
   *
   * @param answered called for each, in any order; without an answer, it is to be passed on whole
   */
  take(head: string, bodies: Buffer, answered: (id: number, answer: BatchedAnswer | undefined) => void): void
}

export interface BatchesInParts {
  readonly desk: Pick<BatchDesk, 'answer'>
  readonly log: Logger
  /** Whether this node still has its place: if not, what it knows may be old. */
  isHeld(): boolean
  /** A request is begun. @returns what to call when it is answered */
  begin(): () => void
}

export function createBatchesIn({ desk, log, isHeld, begin }: BatchesInParts): BatchesIn {
  let underWay = 0
  let bytesUnderWay = 0
  return {
    take(head, bodies, answered) {
      requestsIn(head, bodies, (id, request) => {
        const bytes = bytesOf(request)
        if (!isHeld() || underWay >= MAX_BATCHED_IN_ALL || bytesUnderWay + bytes > MAX_BATCHED_BYTES_IN_ALL) {
          answered(id, undefined)
          return
        }
        underWay += 1
        bytesUnderWay += bytes
        const end = begin()
        const over = (answer: BatchedAnswer | undefined): void => {
          underWay -= 1
          bytesUnderWay -= bytes
          end()
          answered(id, answer)
        }
        desk.answer(request).then(over, (err: unknown) => {
          log.warn({ err }, 'a request of a batch could not be answered, and is passed on whole')
          over(undefined)
        })
      })
    },
  }
}
