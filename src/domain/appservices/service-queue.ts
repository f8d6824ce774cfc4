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

/** A page of the stream, read for a service that had not seen it. */
export interface ReadPage {
  readonly concerning: readonly PlacedEvent[]
  /** Everything up to here was looked at. */
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
  /** Hands a transaction to the service; gives why it was not taken. */
  deliver(txnId: string, body: string): Promise<string | undefined>
  /** The stream after a position, with what of it concerns the service. */
  read(after: number): Promise<ReadPage>
  /** What the next transaction holds beside events; the news after a number, where there is any. */
  extras(newsAfter: number | undefined, taken: readonly RoomEvent[]): Promise<TransactionExtras>
  /** What their rooms show to the service's users whom some of these events invite. */
  invitationState(taken: readonly RoomEvent[]): Promise<InvitationState>
  /** The service has answered all news up to a number. */
  answered(newsUpTo: number): void
}

const PAUSES = { firstMs: 1_000, longestMs: 3_600_000 }
/** A clock that was moved, or a machine that slept, is noticed within this. */
const LOOK_AGAIN_MS = 500

/**
 * What one service is to be sent: one transaction at a time, in the order of the stream, each written down before it is sent and
 * repeated as it was until it is answered. Events beyond what is kept in memory are read again from the stream.
 */
export class ServiceQueue {
  readonly #parts: ServiceQueueParts
  #row: QueueRow
  #queued: PlacedEvent[] = []
  /** Who types, by room. */
  readonly #typing = new Map<string, JsonObject>()
  /** There may be news that is not under way. */
  #hasNews = true
  /** News up to here is removed, or about to be. */
  #removedUpTo = 0
  /** All that concerns it up to here is queued, under way or delivered. */
  #queuedUpTo: number
  /** The newest position that was not queued; at or below `#queuedUpTo` when none is missed. */
  #missedTo: number
  /** What was offered while the stream is being read. */
  #meanwhile: PlacedEvent[] | undefined
  #begunAt = 0
  /** What is written down. That a transaction was answered need not be at once: the next one says so too. */
  #saved: QueueRow | undefined
  #timer: NodeJS.Timeout | undefined
  #timerAt = 0
  #running: Promise<void> | undefined
  #closed = false

  /**
   * @param saved the row as it is written down
   * @param row how the service stands, where nothing is written down yet
   * @param current the newest position of the stream: what lies between the row's and it is read
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

  /** The next event that concerns it. */
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

  /** What concerns it was offered up to here, or was not: then it is to be read. */
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

  /** Who types in a room now. What nobody hears in time is not worth hearing. */
  typing(roomId: string, event: JsonObject): void {
    if (this.#row.failures > 0) return
    this.#typing.delete(roomId)
    if (this.#typing.size < MAX_APPSERVICE_TYPING_ROOMS) this.#typing.set(roomId, event)
    this.wake()
  }

  /** There is news beside events. */
  noticed(): void {
    this.#hasNews = true
    this.wake()
  }

  /** The service was heard of: it is up. */
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

  /** When the next transaction may begin: at once after a quiet time or when there is much, else with the next beat. */
  get #due(): number {
    const now = this.#parts.clock.now()
    // By a clock that was moved back a pause would last for ever.
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

  /** Notes how far it is where that moved without a transaction. */
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
      // The database: what was not written down is not sent.
      this.#parts.log.error(
        { err, appservice: this.#parts.id },
        'a transaction for an application service could not be made',
      )
      await this.#pause('our own database').catch(() => {})
    }
  }

  /** Makes the next transaction, which is to be written down before it is sent. False when there is nothing to be sent. */
  async #begin(): Promise<boolean> {
    while (this.#queued.length < MAX_EVENTS_PER_APPSERVICE_TRANSACTION && this.isBehind) await this.#readOn()
    const { clock, events } = this.#parts
    const taken = this.#queued.slice(0, MAX_EVENTS_PER_APPSERVICE_TRANSACTION)
    const takenEvents = taken.map(({ event }) => event)
    await loadReferences(events, takenEvents)
    const extras = await this.#readExtras(takenEvents)
    const typing = [...this.#typing]
    const isEmpty = taken.length + typing.length + extras.fields.length + extras.ephemeral.length === 0
    // News that turned out to be none is through with as well.
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
    this.#row = { ...this.#row, txn_id: this.#row.txn_id + 1, body, up_to, news_up_to: extras.upTo ?? null }
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

  /** Reads a page of the stream. After the last one, what was offered meanwhile follows: else a busy stream would never be caught up with. */
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

  /** A service that is away costs little memory: what lies behind this is read again. */
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

/** The row once what was under way is answered. */
function delivered(row: QueueRow): QueueRow {
  const news_position = row.news_up_to ?? row.news_position
  const nothing = { body: null, up_to: null, news_up_to: null, failures: 0, retry_at: 0 }
  return { ...row, ...nothing, position: row.up_to!, news_position }
}

/** The body of `PUT A/transactions/{txnId}`: as many of the events as it may hold, and at least one. */
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

/** An invitation with what the room shows to the invited (application service API, "Pushing events"). */
function withInviteState(invitation: JsonBytes, invite_room_state: readonly JsonObject[]): string {
  const event = readExact(invitation.toBuffer().toString('utf8'))
  if (!isObject(event) || !isObject(event.unsigned)) throw new Error('an event is an object')
  return writeJson({ ...event, unsigned: { ...event.unsigned, invite_room_state } })
}
