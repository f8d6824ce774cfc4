import type { Logger } from 'pino'
import { isObject, type JsonObject } from '../../core/json.ts'
import { JsonBytes } from '../../core/json-bytes.ts'
import { readExact, writeJson } from '../../core/large-integers.ts'
import type { QueueRow } from '../../store/appservices/appservice-queue.ts'
import { pauseAfter } from '../backoff.ts'
import type { Clock, Random } from '../clock.ts'
import {
  MAX_APPSERVICE_EVENTS_IN_MEMORY,
  MAX_APPSERVICE_TRANSACTION_BYTES,
  MAX_APPSERVICE_TYPING_ROOMS,
  MAX_EVENTS_IN_MEMORY_FOR_ABSENT_APPSERVICE,
  MAX_EVENTS_PER_APPSERVICE_TRANSACTION,
} from '../limits.ts'
import { loadReferences, writeClientEvent } from '../rooms/room/client-event.ts'
import type { EventCache } from '../rooms/room/event-cache.ts'
import type { RoomEvent } from '../rooms/room/room-event.ts'
import type { PlacedEvent, RoomName } from './interest.ts'
import type { InvitationState } from './invitation-state.ts'
import type { Pace } from './pace.ts'
import type { QueueStore } from './queue-store.ts'
import { EPHEMERAL, type TransactionExtras } from './transaction-extras.ts'

/** A page of the stream, read for a service that has missed it. */
export interface ReadPage {
  readonly concerning: readonly PlacedEvent[]
  /** Everything up to this position was examined. */
  readonly upTo: number
  /** There may be more. */
  readonly isFull: boolean
}

export interface ServiceQueueParts {
  readonly id: string
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly events: EventCache
  readonly store: QueueStore
  readonly pace: Pace
  /** Delivers a transaction to the service. Returns why it failed, if it did. */
  deliver(txnId: string, body: string): Promise<string | undefined>
  /** Reads the stream after a position, with the events that concern the service. */
  read(after: number): Promise<ReadPage>
  /** The parts of the next transaction beside events: news after a number, if there are any. */
  extras(newsAfter: number | undefined, taken: readonly RoomEvent[]): Promise<TransactionExtras>
  /** The stripped state for those events that invite the service's users. */
  invitationState(taken: readonly RoomEvent[]): Promise<InvitationState>
  /** The service has answered all news up to this number. */
  answered(newsUpTo: number): void
}

const PAUSES = { firstMs: 1_000, longestMs: 3_600_000 }
/** A changed clock, or a machine that slept, is noticed within this time. */
const LOOK_AGAIN_MS = 500

/**
 * The queue of one service. It sends one transaction at a time, in stream order. Each is stored before it is sent, and repeated unchanged
 * until the service answers. Events above the limit in memory are read again from the stream.
 */
export class ServiceQueue {
  readonly #parts: ServiceQueueParts
  #row: QueueRow
  #queued: PlacedEvent[] = []
  /** The typing users of each room. */
  readonly #typing = new Map<string, JsonObject>()
  /** Whether there may be news that is not in flight. */
  #hasNews = true
  /** News up to this number is deleted, or will be in a moment. */
  #removedUpTo = 0
  /** All events that concern it up to this position are queued, in flight or delivered. */
  #queuedUpTo: number
  /** The newest position that was not queued; at or below `#queuedUpTo` if none was missed. */
  #missedTo: number
  /** Events that arrived while the stream is being read. */
  #meanwhile: PlacedEvent[] | undefined
  #begunAt = 0
  /** The stored row. The answer to a transaction need not be stored at once: the next row contains it. */
  #saved: QueueRow | undefined
  #timer: NodeJS.Timeout | undefined
  #timerAt = 0
  #running: Promise<void> | undefined
  #closed = false

  /**
   * @param saved the stored row
   * @param row the initial row, if none is stored yet
   * @param current the newest stream position: the events between the row's position and this one are read
   */
  constructor(parts: ServiceQueueParts, saved: QueueRow | undefined, row: QueueRow, current: number) {
    this.#parts = parts
    this.#saved = saved
    this.#row = row
    this.#queuedUpTo = row.up_to ?? row.position
    this.#missedTo = current
  }

  get row(): QueueRow {
    return this.#row
  }

  get isBehind(): boolean {
    return this.#missedTo > this.#queuedUpTo
  }

  /** Queues the next event that concerns it. */
  offer(room: RoomName, event: RoomEvent): void {
    if (event.streamPos <= this.#queuedUpTo) return
    if (this.isBehind || this.#queued.length >= this.#mostInMemory) {
      this.#missedTo = Math.max(this.#missedTo, event.streamPos)
      if (this.#meanwhile && this.#meanwhile.push({ room, event }) > MAX_APPSERVICE_EVENTS_IN_MEMORY) {
        this.#meanwhile = undefined
      }
    } else {
      this.#queued.push({ room, event })
      this.#queuedUpTo = event.streamPos
    }
    this.wake()
  }

  /** All events up to a position were examined. If those that concern it were not offered, they must be read. */
  looked(position: number, wasOffered: boolean): void {
    if (!wasOffered) {
      this.#missedTo = Math.max(this.#missedTo, position)
      this.#meanwhile = undefined
    } else if (!this.isBehind) {
      this.#queuedUpTo = Math.max(this.#queuedUpTo, position)
      this.#missedTo = this.#queuedUpTo
    }
    if (this.isBehind) this.wake()
  }

  /** The typing users of a room. An EDU that arrives late is useless. */
  typing(roomId: string, event: JsonObject): void {
    if (this.#row.failures > 0) return
    this.#typing.delete(roomId)
    if (this.#typing.size < MAX_APPSERVICE_TYPING_ROOMS) this.#typing.set(roomId, event)
    this.wake()
  }

  /** There are news beside events. */
  noticed(): void {
    this.#hasNews = true
    this.wake()
  }

  /** The service has sent us a request, so it is up. */
  heard(): void {
    if (this.#row.failures === 0 || this.#row.retry_at === 0) return
    this.#row = { ...this.#row, retry_at: 0 }
    this.wake()
  }

  wake(): void {
    if (this.#closed || this.#running) return
    const due = this.#due
    const wait = due - this.#parts.clock.now()
    if (wait > 0) {
      if (this.#timer && this.#timerAt <= due) return
      clearTimeout(this.#timer)
      this.#timerAt = due
      this.#timer = setTimeout(() => this.#wakeLater(), Math.min(wait, LOOK_AGAIN_MS)).unref()
      return
    }
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#running = this.#work().finally(() => {
      this.#running = undefined
      if (this.#hasWork || !this.#isSaved) this.wake()
    })
  }

  #wakeLater(): void {
    this.#timer = undefined
    this.wake()
  }

  get #mostInMemory(): number {
    return this.#row.failures === 0 ? MAX_APPSERVICE_EVENTS_IN_MEMORY : MAX_EVENTS_IN_MEMORY_FOR_ABSENT_APPSERVICE
  }

  /** When the next transaction may begin: at once after a quiet time or if there is much to send, otherwise at the next beat. */
  get #due(): number {
    const now = this.#parts.clock.now()
    // If the clock was moved back, a pause must not last for ever.
    const retryAt = this.#row.retry_at > now + 2 * PAUSES.longestMs ? 0 : this.#row.retry_at
    const begunAt = this.#begunAt > now ? 0 : this.#begunAt
    if (this.isBehind || this.#queued.length >= MAX_EVENTS_PER_APPSERVICE_TRANSACTION) return retryAt
    const beatMs = this.#parts.pace.beatMs()
    return Math.max(retryAt, (Math.floor(begunAt / beatMs) + 1) * beatMs)
  }

  get #hasWork(): boolean {
    if (this.#row.body !== null || this.#hasNews || this.#typing.size > 0) return true
    return this.#queued.length > 0 || this.isBehind
  }

  get #isSaved(): boolean {
    return this.#saved === this.#row
  }

  /** Stores the position if it moved without a transaction. */
  async rest(): Promise<void> {
    if (this.#running) return
    if (!this.#hasWork && this.#row.position < this.#queuedUpTo) {
      this.#row = { ...this.#row, position: this.#queuedUpTo }
    }
    if (!this.#isSaved) await this.#save()
  }

  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#timer)
    await this.#running
    await this.rest().catch(() => {})
  }

  async #work(): Promise<void> {
    try {
      await this.#parts.pace.turn()
      if (this.#row.body === null) await this.#begin()
      if (!this.#isSaved) await this.#save()
      while (this.#row.body !== null && !this.#closed) {
        await this.#parts.pace.turn()
        const refusal = await this.#parts.deliver(String(this.#row.txn_id), this.#row.body)
        if (refusal !== undefined) return await this.#pause(refusal)
        if (this.#row.failures > 0)
          this.#parts.log.info({ appservice: this.#parts.id }, 'an application service is back')
        this.#row = delivered(this.#row)
        if (this.#due <= this.#parts.clock.now() && (await this.#begin())) await this.#save()
      }
    } catch (err) {
      // The database failed: a transaction that was not stored is not sent.
      this.#parts.log.error(
        { err, appservice: this.#parts.id },
        'a transaction for an application service could not be made',
      )
      await this.#pause('our own database').catch(() => {})
    }
  }

  /** Makes the next transaction, which must be stored before it is sent. False if there is nothing to send. */
  async #begin(): Promise<boolean> {
    while (this.#queued.length < MAX_EVENTS_PER_APPSERVICE_TRANSACTION && this.isBehind) await this.#readOn()
    const { clock, events } = this.#parts
    const taken = this.#queued.slice(0, MAX_EVENTS_PER_APPSERVICE_TRANSACTION)
    const takenEvents = taken.map(({ event }) => event)
    await loadReferences(events, takenEvents)
    const extras = await this.#readExtras(takenEvents)
    const typing = [...this.#typing]
    const isEmpty = taken.length + typing.length + extras.fields.length + extras.ephemeral.length === 0
    // News that turned out to be empty count as answered too.
    if (isEmpty && extras.upTo === undefined) return false
    if (isEmpty) {
      this.#row = { ...this.#row, news_position: extras.upTo! }
      return this.#begin()
    }
    this.#begunAt = clock.now()
    const ephemeral = [...typing.map(([, event]) => JSON.stringify(event)), ...extras.ephemeral]
    const shown = await this.#parts.invitationState(takenEvents)
    const { body, count } = writeTransaction(taken, shown, { ...extras, ephemeral }, clock.now())
    const last = taken[count - 1]
    const isAll = count === this.#queued.length
    const up_to = isAll ? this.#queuedUpTo : (last?.event.streamPos ?? this.#row.position)
    // After a restore, above all ids that were given out since the backup: a service passes over those that it has seen.
    const txn_id = Math.max(this.#row.txn_id + 1, clock.now())
    this.#row = { ...this.#row, txn_id, body, up_to, news_up_to: extras.upTo ?? null }
    this.#queued.splice(0, count)
    for (const [roomId, event] of typing) if (this.#typing.get(roomId) === event) this.#typing.delete(roomId)
    return true
  }

  async #readExtras(taken: readonly RoomEvent[]): Promise<TransactionExtras> {
    const after = this.#hasNews ? this.#row.news_position : undefined
    this.#hasNews = false
    try {
      const extras = await this.#parts.extras(after, taken)
      this.#hasNews ||= extras.isFull
      return extras
    } catch (error) {
      this.#hasNews = true
      throw error
    }
  }

  /**
   * Reads a page of the stream. After the last page, the events that arrived meanwhile are queued: otherwise a busy stream would never be
   * caught up with.
   */
  async #readOn(): Promise<void> {
    const target = this.#missedTo
    this.#meanwhile = []
    const { concerning, upTo, isFull } = await this.#parts.read(this.#queuedUpTo)
    const offered = this.#meanwhile ?? []
    this.#meanwhile = undefined
    this.#queued.push(...concerning)
    this.#queuedUpTo = isFull ? upTo : Math.max(upTo, target)
    if (isFull) return
    for (const one of offered) {
      if (one.event.streamPos <= this.#queuedUpTo) continue
      this.#queued.push(one)
      this.#queuedUpTo = one.event.streamPos
    }
  }

  /** Limits the memory of an unreachable service's queue: later events are read again. */
  #forgetMost(): void {
    const kept = this.#queued.slice(0, MAX_EVENTS_IN_MEMORY_FOR_ABSENT_APPSERVICE)
    const last = kept.at(-1)
    if (last === undefined || kept.length === this.#queued.length) return
    this.#queued = kept
    this.#missedTo = Math.max(this.#missedTo, this.#queuedUpTo)
    this.#queuedUpTo = last.event.streamPos
  }

  async #pause(reason: string): Promise<void> {
    const { clock, random, log, id } = this.#parts
    const failures = this.#row.failures + 1
    this.#typing.clear()
    this.#forgetMost()
    this.#row = { ...this.#row, failures, retry_at: clock.now() + pauseAfter(failures, PAUSES, random) }
    const facts = { appservice: id, reason, txn_id: this.#row.txn_id, failures, retry_at: this.#row.retry_at }
    if (failures === 1 || failures % 10 === 0) log.warn(facts, 'an application service does not take what it is sent')
    await this.#save()
  }

  async #save(): Promise<void> {
    const row = this.#row
    await this.#parts.store.save(row)
    this.#saved = row
    if (row.news_position <= this.#removedUpTo) return
    this.#removedUpTo = row.news_position
    this.#parts.answered(row.news_position)
  }
}

/** The row after the answer to the transaction in flight. */
function delivered(row: QueueRow): QueueRow {
  const news_position = row.news_up_to ?? row.news_position
  const nothing = { body: null, up_to: null, news_up_to: null, failures: 0, retry_at: 0 }
  return { ...row, ...nothing, position: row.up_to!, news_position }
}

/** The body of `PUT A/transactions/{txnId}`: as many of the events as fit, and at least one. */
function writeTransaction(
  taken: readonly PlacedEvent[],
  shown: InvitationState,
  { ephemeral, fields }: TransactionExtras,
  now: number,
): { body: string; count: number } {
  const out = new JsonBytes().text('{"events":[')
  let count = 0
  for (const { room, event } of taken) {
    if (count > 0 && out.length + event.json.length > MAX_APPSERVICE_TRANSACTION_BYTES) break
    if (count > 0) out.text(',')
    const one = shown.has(event.nid) ? new JsonBytes() : out
    writeClientEvent(one, event, { now, tokenNid: undefined, roomId: room.id as never })
    if (one !== out) out.text(withInviteState(one, shown.get(event.nid)!))
    count += 1
  }
  out.text(']')
  if (ephemeral.length > 0) for (const name of EPHEMERAL) out.key(name).text(`[${ephemeral.join(',')}]`)
  for (const { names, json } of fields) for (const name of names) out.key(name).text(json)
  return { body: out.text('}').toBuffer().toString('utf8'), count }
}

/** An invitation with its stripped state (application service API, "Pushing events"). */
function withInviteState(invitation: JsonBytes, invite_room_state: readonly JsonObject[]): string {
  const event = readExact(invitation.toBuffer().toString('utf8'))
  if (!isObject(event) || !isObject(event.unsigned)) throw new Error('an event is an object')
  return writeJson({ ...event, unsigned: { ...event.unsigned, invite_room_state } })
}
