import type { Logger } from 'pino'
import { ProtocolError } from '../../core/errors.ts'
import type { ServerName } from '../../core/ids.ts'
import { encodeCanonical, isObject, type JsonObject } from '../../core/json.ts'
import type { Peers } from '../../outbound/peers.ts'
import type { DestinationRow } from '../../store/federation-destinations.ts'
import type { KeptEdu } from '../../store/federation-edus.ts'
import type { Clock, Random } from '../clock.ts'
import {
  MAX_EDUS_PER_TRANSACTION,
  MAX_EDUS_WAITING,
  MAX_KEPT_EDUS_PER_TRANSACTION,
  MAX_PDUS_IN_MEMORY,
  MAX_PDUS_PER_TRANSACTION,
} from '../limits.ts'

/** An event on its way. */
export interface OutgoingPdu {
  readonly nid: number
  readonly json: string
}

export interface DestinationParts {
  readonly serverName: ServerName
  readonly peers: Pick<Peers, 'sendTransaction'>
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  /** What was not kept in memory, from a number on: the next of it, or the last of each room where that is too much. */
  missed(server: ServerName, from: number): Promise<OutgoingPdu[]>
  /** The next of the EDUs that the database keeps for it. */
  keptEdus(server: ServerName): Promise<KeptEdu[]>
  /** They were taken. */
  taken(nids: readonly number[]): Promise<void>
}

interface Transaction {
  readonly txnId: string
  readonly body: string
  readonly pdus: number
  readonly keptEdus: readonly number[]
}

const FIRST_PAUSE_MS = 2_000
const LONGEST_PAUSE_MS = 6 * 3_600_000

/**
 * One server that is sent to: one transaction at a time, in order, each repeated as it was until it is answered. When it does not
 * answer it is left alone for longer and longer; what comes meanwhile is remembered by its number alone.
 */
export class Destination {
  readonly server: ServerName
  readonly #parts: DestinationParts
  #pdus: OutgoingPdu[] = []
  #edus: JsonObject[] = []
  /** The database keeps EDUs for it. */
  #hasKept = false
  /** What was sent and not answered. */
  #inFlight: Transaction | undefined
  #firstInFlight = 0
  /** The first event that is not in memory. */
  #missedFrom: number | undefined
  /** The newest of those that are not in memory. */
  #lastMissed = 0
  #failures = 0
  #retryAt = 0
  #timer: NodeJS.Timeout | undefined
  #running: Promise<void> | undefined
  #closed = false

  constructor(server: ServerName, parts: DestinationParts, row?: DestinationRow) {
    this.server = server
    this.#parts = parts
    if (!row) return
    this.#missedFrom = row.first_unsent
    this.#failures = row.failures
    this.#retryAt = row.retry_at
  }

  /** What is to be remembered of it; undefined when it has everything. */
  get row(): DestinationRow | undefined {
    const first = this.#inFlight?.pdus ? this.#firstInFlight : (this.#pdus[0]?.nid ?? this.#missedFrom)
    if (first === undefined) return undefined
    return { server: this.server, first_unsent: first, failures: this.#failures, retry_at: this.#retryAt }
  }

  get isIdle(): boolean {
    return this.#running === undefined && !this.#hasWork && this.#timer === undefined
  }

  get #hasWork(): boolean {
    return (
      this.row !== undefined || this.#edus.length > 0 || this.#hasKept || (this.#inFlight?.keptEdus.length ?? 0) > 0
    )
  }

  pdu(pdu: OutgoingPdu): void {
    if (this.#missedFrom === undefined && this.#pdus.length < MAX_PDUS_IN_MEMORY) this.#pdus.push(pdu)
    else {
      this.#missedFrom ??= pdu.nid
      this.#lastMissed = pdu.nid
    }
    this.wake()
  }

  /** What nobody hears in time is not worth hearing. */
  edu(edu: JsonObject): void {
    if (this.#edus.length >= MAX_EDUS_WAITING) this.#edus.shift()
    this.#edus.push(edu)
    this.wake()
  }

  /** The database keeps an EDU for it that is new. */
  kept(): void {
    this.#hasKept = true
    this.wake()
  }

  /** It was heard of: perhaps it hears us too. */
  heard(): void {
    if (this.#failures === 0) return
    this.#retryAt = 0
    this.wake()
  }

  wake(): void {
    if (this.#closed || this.#running) return
    const wait = this.#retryAt - this.#parts.clock.now()
    if (wait > 0) {
      this.#timer ??= setTimeout(() => this.#wakeLater(), Math.min(wait, LONGEST_PAUSE_MS)).unref()
      return
    }
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#running = this.#work().finally(() => {
      this.#running = undefined
      if (this.#hasWork) this.wake()
    })
  }

  #wakeLater(): void {
    this.#timer = undefined
    this.wake()
  }

  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#timer)
    await this.#running
  }

  async #work(): Promise<void> {
    try {
      for (let next = await this.#next(); next && !this.#closed; next = await this.#next()) {
        this.#inFlight = next
        this.#report(await this.#parts.peers.sendTransaction(this.server, next.txnId, next.body))
        this.#failures = 0
        if (next.keptEdus.length > 0) await this.#parts.taken(next.keptEdus)
        this.#inFlight = undefined
      }
    } catch (error) {
      this.#pause(error)
    }
  }

  async #next(): Promise<Transaction | undefined> {
    if (this.#inFlight) return this.#inFlight
    if (this.#pdus.length === 0 && this.#missedFrom !== undefined) await this.#readMissed(this.#missedFrom)
    const pdus = this.#pdus.slice(0, MAX_PDUS_PER_TRANSACTION)
    const kept = await this.#readKept()
    const edus = this.#edus.slice(0, MAX_EDUS_PER_TRANSACTION - kept.length)
    if (pdus.length === 0 && edus.length === 0 && kept.length === 0) return undefined
    const { serverName, clock, random } = this.#parts
    const all = [...kept.map(({ json }) => json), ...edus.map((edu) => encodeCanonical(edu))].join(',')
    const origin = encodeCanonical({ origin: serverName, origin_server_ts: clock.now() })
    this.#firstInFlight = pdus[0]?.nid ?? 0
    this.#pdus.splice(0, pdus.length)
    this.#edus.splice(0, edus.length)
    return {
      txnId: random.bytes(12).toString('base64url'),
      body: `{"edus":[${all}],${origin.slice(1, -1)},"pdus":[${pdus.map(({ json }) => json).join(',')}]}`,
      pdus: pdus.length,
      keptEdus: kept.map(({ edu_nid }) => edu_nid),
    }
  }

  async #readKept(): Promise<KeptEdu[]> {
    if (!this.#hasKept) return []
    // Before the reading: one that comes meanwhile may not be among it.
    this.#hasKept = false
    try {
      const found = await this.#parts.keptEdus(this.server)
      if (found.length === MAX_KEPT_EDUS_PER_TRANSACTION) this.#hasKept = true
      return found
    } catch (error) {
      this.#hasKept = true
      throw error
    }
  }

  async #readMissed(from: number): Promise<void> {
    const lastBefore = this.#lastMissed
    const found = await this.#parts.missed(this.server, from)
    // One that came while this was read may not be among it.
    const isAll = found.length === 0 && this.#lastMissed === lastBefore
    this.#missedFrom = isAll ? undefined : (found.at(-1)?.nid ?? from - 1) + 1
    this.#pdus.push(...found)
  }

  #pause(error: unknown): void {
    const { clock, random, log } = this.#parts
    this.#failures++
    const pause = Math.min(FIRST_PAUSE_MS * 2 ** Math.min(this.#failures - 1, 20), LONGEST_PAUSE_MS)
    // Not all at once, who were lost at once.
    this.#retryAt = clock.now() + Math.round(pause * (0.75 + random.bytes(1)[0]! / 512))
    if (!(error instanceof ProtocolError)) log.error({ err: error, server: this.server }, 'sending failed')
    else if (this.#failures === 1)
      log.info({ server: this.server, reason: error.message }, 'a server does not take what it is sent')
  }

  #report({ pdus }: JsonObject): void {
    if (!isObject(pdus)) return
    for (const [eventId, result] of Object.entries(pdus)) {
      const error = isObject(result) ? result.error : undefined
      if (error === undefined) continue
      this.#parts.log.info(
        { server: this.server, eventId, error: String(error).slice(0, 200) },
        'an event was not taken',
      )
    }
  }
}
