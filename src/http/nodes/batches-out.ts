import { MAX_BATCHED_BYTES_UNDER_WAY, MAX_BATCHED_UNDER_WAY } from '../../domain/limits/cluster.ts'
import { answersIn, type BatchedAnswer, type BatchedRequest, bytesOf, DueRequests } from './batched.ts'

interface UnderWay {
  readonly bytes: number
  readonly answered: (answer: BatchedAnswer | undefined) => void
}

/** Requests that are passed on in batches over one connection. */
export class BatchesOut {
  readonly #due = new DueRequests()
  readonly #underWay = new Map<number, UnderWay>()
  readonly #schedule: () => void
  readonly #isFull: () => boolean
  #ids = 0
  #bytes = 0
  #isOver = false

  /**
   * @param schedule has what is due sent soon
   * @param isFull whether too much waits to be sent
   */
  constructor(schedule: () => void, isFull: () => boolean) {
    this.#schedule = schedule
    this.#isFull = isFull
  }

  /** Undefined for a request that has to be passed on whole, also because its answer does not come any more: then it may have been done. */
  send(request: BatchedRequest): Promise<BatchedAnswer | undefined> {
    const bytes = bytesOf(request)
    const isTooMuch = this.#underWay.size >= MAX_BATCHED_UNDER_WAY || this.#bytes + bytes > MAX_BATCHED_BYTES_UNDER_WAY
    if (this.#isOver || isTooMuch || this.#isFull()) return Promise.resolve(undefined)
    this.#ids += 1
    const id = this.#ids
    this.#bytes += bytes
    this.#due.add(id, request)
    this.#schedule()
    return new Promise((answered) => {
      this.#underWay.set(id, { bytes, answered })
    })
  }

  /** Frames to be sent now. */
  takeDue(): readonly Buffer[] {
    return this.#due.take()
  }

  /** @param head of a `batched` */
  answered(head: string): void {
    answersIn(head, (id, answer) => {
      const request = this.#underWay.get(id)
      if (request === undefined) return
      this.#underWay.delete(id)
      this.#bytes -= request.bytes
      request.answered(answer)
    })
  }

  /** Nothing is answered any more. */
  end(): void {
    this.#isOver = true
    for (const { answered } of this.#underWay.values()) answered(undefined)
    this.#underWay.clear()
  }
}
