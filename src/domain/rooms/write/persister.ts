import type { Logger } from 'pino'
import { DiskFull } from '../../../store/db/db.ts'
import { writeEventBatch } from '../../../store/events/event-batch.ts'
import { lastPosition } from '../../../store/events/events.ts'
import type { Clock } from '../../clock.ts'
import type { NodeLease } from '../../cluster/node-lease.ts'
import type { Metrics } from '../../metrics.ts'
import { onceAMinute } from '../../once-a-minute.ts'
import type { Room } from '../room/room.ts'
import { type Outcome, streamed, type Unit } from './unit.ts'
import { toBatch } from './unit-batch.ts'
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
  /** Called when events up to a position turn out to be committed although the database never answered their commit. */
  missed(position: number): void
}

const ASK_AGAIN_MS = 1_000

export async function openPersister(parts: PersisterParts): Promise<Persister> {
  const { node } = parts
  let last = await lastPosition(node.writing, node.writer)
  let published = last
  let committedUpTo = last
  const queue = new UnitQueue(parts.refused)
  let running: Promise<void> | undefined
  /** The answer to the unit that was queued last. */
  let newest: Promise<Outcome> | undefined
  /** The database did not answer the last commit; it may have happened. */
  let isInDoubt = false
  const noRoom = onceAMinute((times) =>
    parts.log.error({ times }, 'events could not be written: the disk of the database is full; make room'),
  )

  /**
   * Finds out whether a commit without an answer happened. The query goes over the writing connection, so it waits for earlier statements
   * to end.
   */
  async function resolveDoubt(): Promise<void> {
    const position = await lastPosition(node.writing, node.writer)
    isInDoubt = false
    if (position <= committedUpTo) return
    committedUpTo = position
    parts.missed(position)
  }

  /** Without this, readers would wait until the next write, which may be long. */
  function resolveDoubtSoon(): void {
    setTimeout(() => {
      if (!isInDoubt) return
      if (running) resolveDoubtSoon()
      else running = resolveDoubt().then(publish, resolveDoubtSoon).then(drain)
    }, ASK_AGAIN_MS).unref()
  }

  async function commit(group: readonly Waiting[]): Promise<void> {
    try {
      if (isInDoubt) await resolveDoubt()
      const begun = performance.now()
      const units = group.map(({ unit }) => unit)
      const batch = toBatch(units, parts.clock.now())
      const { advanced, repeated } = await writeEventBatch(node.writing, batch, node)
      parts.metrics.observeCommit(batch.events.length, (performance.now() - begun) / 1000)
      const earlier = new Map(repeated.map(({ tokenNid, hash, eventId }) => [`${tokenNid} ${hash}`, eventId]))
      for (const waiting of group) settle(waiting, advanced, earlier)
    } catch (error) {
      await recover(group, error)
    }
  }

  function settle(
    { unit, resolve }: Waiting,
    advanced: ReadonlySet<number>,
    earlier: ReadonlyMap<string, string>,
  ): void {
    if (advanced.has(unit.room.nid)) {
      for (const event of streamed(unit)) committedUpTo = Math.max(committedUpTo, event.streamPos)
      parts.committed(unit)
      queue.answerLater(() => resolve({ kind: 'committed' }))
      return
    }
    parts.refused(unit.room)
    const eventId = unit.txn && earlier.get(`${unit.txn.tokenNid} ${unit.txn.hash}`)
    queue.answerLater(() => resolve(eventId === undefined ? { kind: 'moved' } : { kind: 'repeated', eventId }))
  }

  /** Tries a failed batch again room by room, so that one unit that cannot be written does not fail the others. */
  async function recover(group: readonly Waiting[], error: unknown): Promise<void> {
    const rooms = new Set(group.map(({ unit }) => unit.room))
    const isOutage = (error as { status?: number }).status === 503
    if (rooms.size > 1 && !isOutage) {
      for (const room of rooms) await commit(group.filter(({ unit }) => unit.room === room))
      return
    }
    if (error instanceof DiskFull) noRoom()
    if (isOutage) {
      if (!isInDoubt) resolveDoubtSoon()
      isInDoubt = true
    } else parts.log.error({ err: error }, 'a batch of events could not be written')
    for (const { unit, reject } of group) {
      parts.refused(unit.room)
      queue.answerLater(() => reject(error))
    }
  }

  function publish(): void {
    if (committedUpTo <= published) return
    published = committedUpTo
    parts.published()
  }

  async function drain(): Promise<void> {
    while (!queue.isEmpty) {
      const group = queue.take()
      if (group.length > 0) await commit(group)
      const answers = queue.takeAnswers()
      publish()
      for (const answer of answers) answer()
    }
    running = undefined
  }

  return {
    takeNid: () => ++last,
    lastNid: () => last,
    position: () => published,
    // Units are answered in order, so the newest comes last. While others write, the queue may never be empty.
    async idle() {
      await newest?.catch(() => undefined)
    },
    enqueue(unit) {
      newest = new Promise((resolve, reject) => {
        queue.add({ unit, resolve, reject })
        running ??= new Promise<void>((start) => setImmediate(start)).then(drain)
      })
      return newest
    },
  }
}
