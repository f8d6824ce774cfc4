import { type BatchOutcome, writeEventBatch } from '../../../store/events/event-batch.ts'
import type { Clock } from '../../clock.ts'
import type { NodeLease } from '../../cluster/node-lease.ts'
import type { Metrics } from '../../metrics.ts'
import { toBatch } from './unit-batch.ts'
import type { Taken, UnitQueue, Waiting } from './unit-queue.ts'

/** How many batches the writing connection has at most: one that is being written, and one that waits behind it. */
const MAX_UNDER_WAY = 2
/** So many units are sent behind a batch that is not answered, and at least as many as it has: many small commits cost more than one large. */
const MIN_BEHIND = 24

const NOTHING_WRITTEN: BatchOutcome = { advanced: new Set(), repeated: [] }

/** A batch on its way. */
export interface Sent extends Taken {
  readonly outcome: Promise<BatchOutcome>
  /** Its rooms of which nothing may be sent before it is answered. */
  readonly unmarked: ReadonlySet<number>
}

export interface PipelineParts {
  readonly node: Pick<NodeLease, 'writer' | 'fence' | 'writing'>
  readonly clock: Clock
  readonly metrics: Pick<Metrics, 'observeCommit'>
  readonly queue: UnitQueue
  /** Resolves when it is known what came of all earlier commits; undefined if it is. */
  ready(): Promise<void> | undefined
}

/**
 * The batches on their way to the database, which writes them one after another, as they were sent. The next one may be sent before the one
 * ahead of it is answered, so that the database does not wait for this process in between. A batch that stands on a refused head is refused
 * too, because a head is known by its version and its newest event.
 */
export class BatchPipeline {
  readonly #parts: PipelineParts
  readonly #underWay: Sent[] = []
  #isSendingSoon = false
  #answeredAt = 0
  /** Nothing is sent behind what is under way. */
  isPaused = false

  constructor(parts: PipelineParts) {
    this.#parts = parts
  }

  get oldest(): Sent | undefined {
    return this.#underWay[0]
  }

  async write(group: readonly Waiting[]): Promise<BatchOutcome> {
    const { node, clock, metrics } = this.#parts
    const isReady = this.#parts.ready()
    if (isReady) await isReady
    const begun = performance.now()
    const units = group.map(({ unit }) => unit)
    const batch = toBatch(units, clock.now())
    const outcome = await writeEventBatch(node.writing, batch, node)
    const now = performance.now()
    // Before the one ahead of it was answered, it only waited.
    metrics.observeCommit(batch.events.length, (now - Math.max(begun, this.#answeredAt)) / 1000)
    this.#answeredAt = now
    return outcome
  }

  /** Sends what waits. */
  send(upTo?: number): Sent {
    const taken = this.#parts.queue.take(upTo)
    const outcome = taken.group.length > 0 ? this.write(taken.group) : Promise.resolve(NOTHING_WRITTEN)
    // It may fail before its turn comes.
    outcome.catch(() => undefined)
    const sent = { ...taken, outcome, unmarked: unmarkedRooms(taken.group) }
    this.#underWay.push(sent)
    return sent
  }

  /** The oldest batch was answered. */
  answered(): void {
    this.#underWay.shift()
  }

  /** Sends what waits, if it is enough to be sent behind what is not answered. */
  sendNext(): void {
    if (this.isPaused || this.#underWay.length >= MAX_UNDER_WAY) return
    const ahead = this.oldest
    const length = this.#parts.queue.lengthBefore(ahead?.unmarked)
    if (length >= (ahead ? Math.max(MIN_BEHIND, ahead.group.length) : 1)) this.send(length)
  }

  /** Once per tick, so that what comes together is sent together. */
  sendNextSoon(): void {
    if (this.#isSendingSoon || this.#parts.queue.length < MIN_BEHIND || this.#underWay.length >= MAX_UNDER_WAY) return
    this.#isSendingSoon = true
    setImmediate(() => {
      this.#isSendingSoon = false
      if (this.oldest) this.sendNext()
    })
  }
}

/** The rooms of a batch whose newest event stays as it is: the head that it makes cannot be told from one that another write made. */
function unmarkedRooms(group: readonly Waiting[]): ReadonlySet<number> {
  const newest = new Map<number, number>()
  const unmarked = new Set<number>()
  for (const { unit } of group) {
    const { nid } = unit.room
    if (!newest.has(nid)) newest.set(nid, unit.before.nid)
    if (unit.after.nid === newest.get(nid)) unmarked.add(nid)
    else unmarked.delete(nid)
  }
  return unmarked
}
