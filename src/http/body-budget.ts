import type { BodyRefusal } from '../domain/arrival-metrics.ts'
import { MAX_BODY_BYTES_IN_FLIGHT, MAX_BODY_BYTES_OF_SENDER, MAX_SMALL_BODY_BYTES_IN_FLIGHT } from '../domain/limits.ts'

/** The share of a long body in the budget. */
export interface HeldBody {
  readonly sender: string
  /** The longest that its endpoint takes: one of this length always fits. */
  readonly most: number
  bytes: number
}

/**
 * A budget for the bytes of bodies in memory. Short bodies have a part of their own, so that long ones cannot keep them out. Long ones have
 * a limit for each sender and one for all, and count until their request is answered.
 */
export class BodyBudget {
  readonly #ofLong: number
  readonly #senders = new Map<string, number>()
  #long = 0
  #short = 0

  /** @param longest the longest body of any endpoint: one of this length always fits */
  constructor(longest: number) {
    this.#ofLong = Math.max(MAX_BODY_BYTES_IN_FLIGHT - MAX_SMALL_BODY_BYTES_IN_FLIGHT, longest)
  }

  get bytes(): number {
    return this.#long + this.#short
  }

  takeShort(bytes: number): BodyRefusal | undefined {
    if (this.#short + bytes > MAX_SMALL_BODY_BYTES_IN_FLIGHT) return 'everybody'
    this.#short += bytes
    return undefined
  }

  giveShort(bytes: number): void {
    this.#short -= bytes
  }

  /** Why so many more bytes of a body do not fit now; undefined if they do. */
  refusalOf({ sender, most }: HeldBody, bytes: number): BodyRefusal | undefined {
    if ((this.#senders.get(sender) ?? 0) + bytes > Math.max(MAX_BODY_BYTES_OF_SENDER, most)) return 'sender'
    return this.#long + bytes > this.#ofLong ? 'everybody' : undefined
  }

  takeLong(body: HeldBody, bytes: number): BodyRefusal | undefined {
    const refusal = this.refusalOf(body, bytes)
    if (refusal !== undefined) return refusal
    this.#senders.set(body.sender, (this.#senders.get(body.sender) ?? 0) + bytes)
    this.#long += bytes
    body.bytes += bytes
    return undefined
  }

  giveLong(body: HeldBody): void {
    const left = (this.#senders.get(body.sender) ?? 0) - body.bytes
    if (left > 0) this.#senders.set(body.sender, left)
    else this.#senders.delete(body.sender)
    this.#long -= body.bytes
    body.bytes = 0
  }
}
