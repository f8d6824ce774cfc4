import { setImmediate as othersTurn } from 'node:timers/promises'
import { ProtocolError } from '../../core/errors.ts'
import type { ServerName } from '../../core/ids.ts'
import { isObject, type JsonObject } from '../../core/json.ts'
import { encodeCanonical } from '../../core/signing/canonical-json.ts'
import type { Peers } from '../../outbound/peers.ts'
import type { DestinationRow } from '../../store/federation/federation-destinations.ts'
import type { KeptEdu } from '../../store/federation/federation-edus.ts'
import { pauseAfter } from '../backoff.ts'
import type { Clock, Random } from '../clock.ts'
import {
  MAX_EDUS_PER_TRANSACTION,
  MAX_EDUS_WAITING,
  MAX_KEPT_EDUS_PER_TRANSACTION,
  MAX_PDUS_IN_MEMORY,
  MAX_PDUS_PER_TRANSACTION,
} from '../limits.ts'
import type { DestinationLog, DestinationState, DestinationStatus } from './sending/destination-log.ts'
import { isLimit, isRefusal, retryAfterOf } from './sending/send-failures.ts'
import type { Turns } from './sending/turns.ts'

/** An event that is being sent. */
export interface OutgoingPdu {
  readonly nid: number
  readonly json: string
}

export interface DestinationParts {
  readonly serverName: ServerName
  readonly peers: Pick<Peers, 'sendTransaction'>
  readonly clock: Clock
  readonly random: Random
  readonly log: DestinationLog
  /** Events that were not kept in memory, from a nid on. */
  missed(server: ServerName, from: number): Promise<Missed>
  /** The next stored EDUs for the server. */
  keptEdus(server: ServerName): Promise<KeptEdu[]>
  /** Deletes stored EDUs: the server has them, or they will not be sent any more. */
  taken(nids: readonly number[]): Promise<void>
  /** The queues of servers that may be unreachable, and of those that have been unreachable for long. */
  readonly turns: { readonly doubtful: Turns; readonly gone: Turns }
  /** Whether sending has begun. */
  isOpen(): boolean
  /** Called when the destination's `row` may have changed. */
  changed(destination: Destination): void
}

export interface Missed {
  /** In the order in which they are sent. */
  readonly pdus: readonly OutgoingPdu[]
  /** The nid from which to read on; `pdus` holds everything before. */
  readonly next: number
}

interface Transaction {
  readonly txnId: string
  readonly body: string
  readonly pdus: readonly OutgoingPdu[]
  readonly keptEdus: readonly number[]
  /** The number of EDUs that are not stored. */
  readonly edus: number
}

const FIRST_PAUSE_MS = 2_000
const LONGEST_PAUSE_MS = 6 * 3_600_000
/** After this many failures in a row no events are kept in memory for a server, and retries send an empty transaction first. */
const PATIENCE = 3
/** After this many failures, some of them half an hour apart, the server counts as gone. All such servers share one slow queue. */
const GONE_AFTER = 10
/** Characters of a failure that are kept for operators. */
const MAX_ERROR_CHARS = 500
/** How often the server must refuse an event before we skip it. */
const REFUSALS_BELIEVED = 3

/**
 * One server that events are sent to. It gets one transaction at a time, in order, and each is repeated unchanged until the server
 * answers. While the server does not answer, the pauses grow, and only the nids of new events are remembered.
 *
 * A transaction that the server refuses for good (400, 413) is cut in halves until a single event is left. If the server refuses that one
 * several times, we skip it and send what follows.
 */
export class Destination {
  readonly server: ServerName
  readonly #parts: DestinationParts
  #pdus: OutgoingPdu[] = []
  #edus: JsonObject[] = []
  /** Whether the database has EDUs for it. */
  #hasKept = false
  /** The transaction that was sent and not answered. */
  #inFlight: Transaction | undefined
  /** The nid of the first event that is not in memory. */
  #missedFrom: number | undefined
  /** The nid of the newest event that is not in memory. */
  #lastMissed = 0
  #failures = 0
  #retryAt = 0
  #failingSince: number | undefined
  #triedAt: number | undefined
  #lastError: string | undefined
  /** The server lagged behind when the process started, so it may be unreachable. */
  #isDoubtful: boolean
  /** The most PDUs and stored EDUs in one transaction. It shrinks while the server refuses some of them. */
  #width = MAX_PDUS_PER_TRANSACTION
  #refusals = 0
  #timer: NodeJS.Timeout | undefined
  #running: Promise<void> | undefined
  #closed = false

  constructor(server: ServerName, parts: DestinationParts, row?: DestinationRow) {
    this.server = server
    this.#parts = parts
    this.#isDoubtful = row !== undefined
    if (!row) return
    this.#missedFrom = row.first_unsent
    this.#failures = row.failures
    // The first attempt after a start ignores the pause, however long the server was unreachable: perhaps the fault was ours.
    this.#retryAt = row.failures > 0 ? 0 : row.retry_at
  }

  /** The row to store for it; undefined if it has everything. */
  get row(): DestinationRow | undefined {
    const inMemory = [...(this.#inFlight?.pdus ?? []), ...this.#pdus].map(({ nid }) => nid)
    const first = Math.min(...inMemory, this.#missedFrom ?? Number.POSITIVE_INFINITY)
    if (first === Number.POSITIVE_INFINITY) return undefined
    return { server: this.server, first_unsent: first, failures: this.#failures, retry_at: this.#retryAt }
  }

  get status(): DestinationStatus {
    return {
      failures: this.#failures,
      failingSince: this.#failingSince ?? null,
      triedAt: this.#triedAt ?? null,
      retryAt: this.#failures === 0 ? 0 : this.#retryAt,
      lastError: this.#lastError ?? null,
      waiting: this.waiting.pdus,
    }
  }

  get state(): DestinationState {
    if (this.#failures >= GONE_AFTER) return 'gone'
    if (this.#failures > 0) return 'failing'
    if (this.#running !== undefined) return 'sending'
    return this.isIdle ? 'idle' : 'waiting'
  }

  /** Events and EDUs in memory. */
  get waiting(): { readonly pdus: number; readonly edus: number } {
    const { pdus, edus } = this.#inFlight ?? { pdus: [], edus: 0 }
    return { pdus: pdus.length + this.#pdus.length, edus: edus + this.#edus.length }
  }

  /** The number of the first event that it has not been sent. What is in flight was queued first. */
  get firstUnsent(): number | undefined {
    return this.#inFlight?.pdus[0]?.nid ?? this.#pdus[0]?.nid ?? this.#missedFrom
  }

  get isIdle(): boolean {
    return this.#running === undefined && !this.#hasWork && this.#timer === undefined
  }

  get #hasWork(): boolean {
    const hasPdus = this.#pdus.length > 0 || this.#missedFrom !== undefined
    return hasPdus || this.#edus.length > 0 || this.#hasKept || this.#inFlight !== undefined
  }

  /** It has not answered several times in a row. */
  get #isAway(): boolean {
    return this.#failures >= PATIENCE
  }

  pdu(pdu: OutgoingPdu): void {
    const fits = this.#missedFrom === undefined && !this.#isAway && this.#pdus.length < MAX_PDUS_IN_MEMORY
    if (fits) {
      this.#pdus.push(pdu)
      this.#parts.changed(this)
    } else this.#miss(pdu.nid)
    this.wake()
  }

  #miss(nid: number): void {
    if (this.#missedFrom === undefined || nid < this.#missedFrom) this.#parts.changed(this)
    this.#missedFrom = Math.min(this.#missedFrom ?? nid, nid)
    this.#lastMissed = Math.max(this.#lastMissed, nid)
  }

  /** An EDU that arrives late is useless, so none waits for an unreachable server. */
  edu(edu: JsonObject): void {
    if (this.#isAway) return
    if (this.#edus.length >= MAX_EDUS_WAITING) this.#edus.shift()
    this.#edus.push(edu)
    this.wake()
  }

  /** The database has EDUs for it. @param isFromBefore whether they were there when the process started */
  kept(isFromBefore = false): void {
    this.#hasKept = true
    this.#isDoubtful ||= isFromBefore
    this.wake()
  }

  /** The server sent us a request, so perhaps we can reach it again. */
  heard(): void {
    if (this.#failures === 0 && !this.#isDoubtful) return
    this.#leaveTurns()
    this.#retryAt = 0
    this.#isDoubtful = false
    if (!this.#closed && !this.#running && this.#hasWork) this.#start()
  }

  wake(): void {
    if (this.#closed || this.#running || !this.#parts.isOpen()) return
    const wait = this.#retryAt - this.#parts.clock.now()
    if (wait > 0) {
      this.#timer ??= setTimeout(() => this.#wakeLater(), Math.min(wait, LONGEST_PAUSE_MS)).unref()
      return
    }
    const { doubtful, gone } = this.#parts.turns
    if (this.#failures >= GONE_AFTER) gone.add(this.#attempt)
    else if (this.#failures > 0 || this.#isDoubtful) doubtful.add(this.#attempt)
    else this.#start()
  }

  #leaveTurns(): void {
    this.#parts.turns.doubtful.drop(this.#attempt)
    this.#parts.turns.gone.drop(this.#attempt)
  }

  #wakeLater(): void {
    this.#timer = undefined
    this.wake()
  }

  readonly #attempt = async (): Promise<void> => {
    if (!this.#closed && !this.#running) await this.#start()
  }

  #start(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#parts.changed(this)
    this.#running = this.#work().finally(() => {
      this.#running = undefined
      this.#parts.changed(this)
      if (this.#hasWork) this.wake()
    })
    return this.#running
  }

  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#timer)
    this.#leaveTurns()
    await this.#running
  }

  async #work(): Promise<void> {
    try {
      // For an unreachable server nothing is read from the database: an empty transaction first tests whether it answers.
      if (this.#isAway) await this.#send(this.#transaction([], [], []))
      for (let next = await this.#next(); next && !this.#closed; next = await this.#next()) {
        this.#inFlight = next
        if (await this.#isTaken(next)) await this.#settle(next)
        // The connection is free only after this. Without it the next transaction would open another one.
        await othersTurn()
      }
      this.#isDoubtful = false
    } catch (error) {
      this.#pause(error)
    }
  }

  #send({ txnId, body }: Transaction): Promise<JsonObject> {
    return this.#parts.peers.sendTransaction(this.server, txnId, body)
  }

  async #settle({ keptEdus }: Transaction): Promise<void> {
    this.#failures = 0
    this.#failingSince = undefined
    this.#lastError = undefined
    this.#refusals = 0
    this.#width = Math.min(this.#width * 2, MAX_PDUS_PER_TRANSACTION)
    if (keptEdus.length > 0) await this.#parts.taken(keptEdus)
    this.#inFlight = undefined
  }

  /**
   * Whether the transaction is finished. If the server refused it, its parts go back into the queue and are sent in smaller transactions.
   */
  async #isTaken(sent: Transaction): Promise<boolean> {
    try {
      this.#report(await this.#send(sent))
      return true
    } catch (error) {
      if (!isRefusal(error)) throw error
      const size = sent.pdus.length + sent.keptEdus.length
      const isSingle = size === 1 && sent.edus === 0
      if (isSingle && ++this.#refusals >= REFUSALS_BELIEVED) {
        const fields = { reason: (error as Error).message, event: sent.pdus[0]?.nid }
        this.#parts.log('warn', this.server, fields, 'passed over')
        return true
      }
      this.#inFlight = undefined
      this.#width = Math.max(1, Math.floor(size / 2))
      this.#pdus.unshift(...sent.pdus)
      this.#hasKept ||= sent.keptEdus.length > 0
      if (isSingle) throw error
      return false
    }
  }

  async #next(): Promise<Transaction | undefined> {
    if (this.#inFlight) return this.#inFlight
    if (this.#pdus.length === 0 && this.#missedFrom !== undefined) await this.#readMissed(this.#missedFrom)
    const pdus = this.#pdus.slice(0, this.#width)
    const kept = await this.#readKept(this.#width - pdus.length)
    const edus = this.#edus.slice(0, MAX_EDUS_PER_TRANSACTION - kept.length)
    if (pdus.length === 0 && edus.length === 0 && kept.length === 0) return undefined
    this.#pdus.splice(0, pdus.length)
    this.#edus.splice(0, edus.length)
    return this.#transaction(pdus, kept, edus)
  }

  #transaction(pdus: readonly OutgoingPdu[], kept: readonly KeptEdu[], edus: readonly JsonObject[]): Transaction {
    const { serverName, clock, random } = this.#parts
    const all = [...kept.map(({ json }) => json), ...edus.map((edu) => encodeCanonical(edu))].join(',')
    const origin = encodeCanonical({ origin: serverName, origin_server_ts: clock.now() })
    return {
      txnId: random.bytes(12).toString('base64url'),
      body: `{"edus":[${all}],${origin.slice(1, -1)},"pdus":[${pdus.map(({ json }) => json).join(',')}]}`,
      pdus,
      keptEdus: kept.map(({ edu_nid }) => edu_nid),
      edus: edus.length,
    }
  }

  async #readKept(atMost: number): Promise<readonly KeptEdu[]> {
    if (!this.#hasKept || atMost === 0) return []
    // Reset before the read: EDUs that arrive during it may not be in the result.
    this.#hasKept = false
    try {
      const found = await this.#parts.keptEdus(this.server)
      if (found.length === MAX_KEPT_EDUS_PER_TRANSACTION || found.length > atMost) this.#hasKept = true
      return found.slice(0, atMost)
    } catch (error) {
      this.#hasKept = true
      throw error
    }
  }

  async #readMissed(from: number): Promise<void> {
    const lastBefore = this.#lastMissed
    const { pdus, next } = await this.#parts.missed(this.server, from)
    // Events that came during the read may not be in the result.
    const isAll = pdus.length === 0 && this.#lastMissed === lastBefore
    this.#missedFrom = isAll ? undefined : next
    this.#pdus.push(...pdus)
  }

  #pause(error: unknown): void {
    const { clock, random, log } = this.#parts
    const retryAfterMs = retryAfterOf(error)
    this.#isDoubtful = false
    this.#triedAt = clock.now()
    this.#lastError = error instanceof Error ? error.message.slice(0, MAX_ERROR_CHARS) : 'unknown'
    if (retryAfterMs !== undefined && isLimit(error)) {
      // The server answers, and says when it accepts requests again.
      this.#retryAt = clock.now() + retryAfterMs
      return
    }
    this.#failures++
    this.#failingSince ??= this.#triedAt
    const bounds = { firstMs: FIRST_PAUSE_MS, longestMs: LONGEST_PAUSE_MS }
    this.#retryAt = clock.now() + Math.max(pauseAfter(this.#failures, bounds, random), retryAfterMs ?? 0)
    if (this.#isAway) this.#letGo()
    if (!(error instanceof ProtocolError)) log('error', this.server, { err: error }, 'sending failed')
    else if (this.#failures === 1)
      log('info', this.server, { reason: error.message }, 'a server does not take what it is sent')
  }

  /** Clears the memory: events are found again by nid, stored EDUs are in the database, and other EDUs would arrive too late. */
  #letGo(): void {
    for (const { nid } of [...(this.#inFlight?.pdus ?? []), ...this.#pdus]) this.#miss(nid)
    this.#hasKept ||= (this.#inFlight?.keptEdus.length ?? 0) > 0
    this.#inFlight = undefined
    this.#pdus = []
    this.#edus = []
  }

  #report({ pdus }: JsonObject): void {
    if (!isObject(pdus)) return
    for (const [eventId, result] of Object.entries(pdus)) {
      const error = isObject(result) ? result.error : undefined
      if (error === undefined) continue
      const fields = { eventId, error: String(error).slice(0, 200) }
      this.#parts.log('info', this.server, fields, 'an event was not taken')
    }
  }
}
