import { lastPosition } from '../../../store/events/events.ts'
import type { NodeLease } from '../../cluster/node-lease.ts'

export interface StreamPositionParts {
  readonly node: Pick<NodeLease, 'writer' | 'writing'>
  /** Called when a further position is published. */
  published(): void
  /** Called when events after one position, up to another, turn out to be committed although the database never answered their commit. */
  missed(position: number, after: number): void
}

/** How far the stream of events is committed, and up to where readers are told so. */
export class StreamPosition {
  readonly #parts: StreamPositionParts
  #committed: number
  #published: number
  /** Why it is not known whether the last commit happened: the database did not answer it. */
  doubt: { readonly error: unknown } | undefined

  /** @param last the last committed position */
  constructor(parts: StreamPositionParts, last: number) {
    this.#parts = parts
    this.#committed = last
    this.#published = last
  }

  get published(): number {
    return this.#published
  }

  committed(position: number): void {
    this.#committed = Math.max(this.#committed, position)
  }

  /** While a commit is in doubt, readers must not go past its events. */
  publish(): void {
    if (this.doubt || this.#committed <= this.#published) return
    this.#published = this.#committed
    this.#parts.published()
  }

  /**
   * Finds out whether commits without an answer happened. The query goes over the writing connection, so it waits for earlier statements
   * to end.
   */
  async resolveDoubt(): Promise<void> {
    const { node, missed } = this.#parts
    const position = await lastPosition(node.writing, node.writer)
    this.doubt = undefined
    if (position <= this.#published) return
    this.#committed = position
    missed(position, this.#published)
    this.publish()
  }
}
