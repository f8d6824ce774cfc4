import type { Logger } from 'pino'
import { DiskFull } from '../../../store/db/db.ts'
import type { BatchOutcome } from '../../../store/events/event-batch.ts'
import { lastPosition } from '../../../store/events/events.ts'
import type { Clock } from '../../clock.ts'
import type { NodeLease } from '../../cluster/node-lease.ts'
import type { Metrics } from '../../metrics.ts'
import { onceAMinute } from '../../once-a-minute.ts'
import type { Room } from '../room/room.ts'
import { BatchPipeline } from './batch-pipeline.ts'
import { StreamPosition } from './stream-position.ts'
import { type Outcome, streamed, type Unit } from './unit.ts'
import { UnitQueue, type Waiting } from './unit-queue.ts'

/** The one writer of events in this process: a queue that is drained once per tick into one commit. */
export interface Persister {
  /** Takes the next number. An event's stream position is the last number that was taken when it is enqueued. */
  takeNid(): number
  /** The number that was taken last. */
  lastNid(): number
  enqueue(unit: Unit): Promise<Outcome>
  /** The newest committed stream position. */
  position(): number
  /** Resolves when everything in the queue now has been written or refused. */
  idle(): Promise<void>
}

export interface PersisterParts {
  readonly node: Pick<NodeLease, 'writer' | 'fence' | 'writing'>
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: Pick<Metrics, 'observeCommit'>
  /** Called for each committed unit, in order, before its caller gets the answer. */
  committed(unit: Unit): void
  /** Called once per batch, when all its units are applied. */
  published(): void
  /** Called for a room whose write was refused. */
  refused(room: Room): void
  /** Called when events after one position, up to another, turn out to be committed although the database never answered their commit. */
  missed(position: number, after: number): void
}

const ASK_AGAIN_MS = 1_000

export async function openPersister(parts: PersisterParts): Promise<Persister> {
  const { node, clock, metrics } = parts
  let last = await lastPosition(node.writing, node.writer)
  const position = new StreamPosition(parts, last)
  const queue = new UnitQueue(parts.refused)
  const ready = () => (position.doubt ? position.resolveDoubt() : undefined)
  const pipeline = new BatchPipeline({ node, clock, metrics, queue, ready })
  /** Answers of the current batch. They go out after its position is published, so that a caller that reads at once finds its event. */
  let answers: (() => void)[] = []
  let running: Promise<void> | undefined
  /** The answer to the unit that was queued last. */
  let newest: Promise<Outcome> | undefined
  const noRoom = onceAMinute((times) =>
    parts.log.error({ times }, 'events could not be written: the disk of the database is full; make room'),
  )

  /** Without this, readers would wait until the next write, which may be long. */
  function resolveDoubtSoon(): void {
    setTimeout(() => {
      if (!position.doubt) return
      if (running) resolveDoubtSoon()
      else running = position.resolveDoubt().catch(resolveDoubtSoon).then(drain)
    }, ASK_AGAIN_MS).unref()
  }

  /** Takes in what came of a batch. While a commit ahead of it is in doubt, it does not count, whatever the database says. */
  async function finish(group: readonly Waiting[], outcome: Promise<BatchOutcome>): Promise<void> {
    try {
      accept(group, await outcome)
    } catch (error) {
      await recover(group, position.doubt ? position.doubt.error : error)
    }
  }

  function accept(group: readonly Waiting[], { advanced, repeated }: BatchOutcome): void {
    if (position.doubt) throw position.doubt.error
    for (const { unit } of group) if (!advanced.has(unit.room.nid)) parts.refused(unit.room)
    if (pipeline.oldest?.group === group) {
      pipeline.answered()
      // Before all who hear of these commits take their time, the database gets work.
      pipeline.sendNext()
    }
    const earlier = new Map(repeated.map(({ tokenNid, hash, eventId }) => [`${tokenNid} ${hash}`, eventId]))
    for (const waiting of group) settle(waiting, advanced, earlier)
  }

  function settle(
    { unit, resolve }: Waiting,
    advanced: ReadonlySet<number>,
    earlier: ReadonlyMap<string, string>,
  ): void {
    if (advanced.has(unit.room.nid)) {
      for (const event of streamed(unit)) position.committed(event.streamPos)
      parts.committed(unit)
      answers.push(() => resolve({ kind: 'committed' }))
      return
    }
    const eventId = unit.txn && earlier.get(`${unit.txn.tokenNid} ${unit.txn.hash}`)
    answers.push(() => resolve(eventId === undefined ? { kind: 'moved' } : { kind: 'repeated', eventId }))
  }

  /** Tries a failed batch again room by room, so that one unit that cannot be written does not fail the others. */
  async function recover(group: readonly Waiting[], error: unknown): Promise<void> {
    pipeline.isPaused = true
    const rooms = new Set(group.map(({ unit }) => unit.room))
    const isOutage = (error as { status?: number }).status === 503
    if (rooms.size > 1 && !isOutage) {
      for (const room of rooms) {
        const part = group.filter(({ unit }) => unit.room === room)
        await finish(part, position.doubt ? Promise.reject(position.doubt.error) : pipeline.write(part))
      }
      return
    }
    if (error instanceof DiskFull) noRoom()
    if (isOutage) {
      if (!position.doubt) resolveDoubtSoon()
      position.doubt = { error }
    } else parts.log.error({ err: error }, 'a batch of events could not be written')
    for (const { unit, reject } of group) {
      parts.refused(unit.room)
      answers.push(() => reject(error))
    }
  }

  async function drain(): Promise<void> {
    while (pipeline.oldest || queue.length > 0) {
      const batch = pipeline.oldest ?? pipeline.send()
      await finish(batch.group, batch.outcome)
      if (pipeline.oldest === batch) pipeline.answered()
      pipeline.isPaused = position.doubt !== undefined
      for (const { resolve } of batch.moved) answers.push(() => resolve({ kind: 'moved' }))
      const now = answers
      answers = []
      position.publish()
      for (const answer of now) answer()
    }
    running = undefined
  }

  return {
    takeNid: () => ++last,
    lastNid: () => last,
    position: () => position.published,
    // Units are answered in order, so the newest comes last. While others write, the queue may never be empty.
    async idle() {
      await newest?.catch(() => undefined)
    },
    enqueue(unit) {
      newest = new Promise((resolve, reject) => {
        queue.add({ unit, resolve, reject })
        if (running) pipeline.sendNextSoon()
        else running = new Promise<void>((start) => setImmediate(start)).then(drain)
      })
      return newest
    },
  }
}
