import { createCache } from '../../core/cache.ts'
import type { GatewayRow } from '../../store/accounts/pushers.ts'
import { pauseAfter } from '../backoff.ts'
import type { Clock, Random } from '../clock.ts'
import {
  MAX_KNOWN_GATEWAYS,
  MAX_PUSHES_AT_ONCE,
  MAX_PUSHES_PER_GATEWAY,
  MAX_PUSHES_TO_UNPROVEN_GATEWAY,
  MAX_PUSHES_TO_UNPROVEN_GATEWAYS,
  SLOW_PUSH_MS,
} from '../limits/pushers.ts'
import { Resting } from './resting.ts'

/** What came of a turn: the gateway answered, in whatever way; it did not; or there was nothing to send. */
export type Turn = 'answered' | 'unanswered' | 'idle'

/** What waits for a turn at a gateway. */
export interface Waiting {
  /** The scheme, host and port of its gateway. */
  readonly origin: string
  /** When it may be sent, in milliseconds; undefined if it has nothing to send. */
  readonly dueAt: number | undefined
  /** Sends one notification. Never throws. */
  run(): Promise<Turn>
}

export const PUSH_PAUSES = { firstMs: 1_000, longestMs: 3_600_000 }
/** How often to look for what is due, at least and at most. A changed clock is noticed within this time. */
export const LOOK_EVERY_MS = 250
const LOOK_AFTER_MS = 8

class Gateway {
  readonly origin: string
  /** In the order of their turns. */
  readonly line = new Set<Waiting>()
  running = 0
  isProven: boolean
  failures: number
  retryAt: number

  constructor(origin: string, isProven: boolean, { failures, retry_at }: Omit<GatewayRow, 'origin'>) {
    this.origin = origin
    this.isProven = isProven
    this.failures = failures
    this.retryAt = retry_at
  }

  get hasRoom(): boolean {
    if (this.failures > 0) return this.running === 0
    return this.running < (this.isProven ? MAX_PUSHES_PER_GATEWAY : MAX_PUSHES_TO_UNPROVEN_GATEWAY)
  }
}

/** Gives turns at push gateways: to each gateway in order, and to all of them within bounds. */
export class Gateways {
  readonly #clock: Clock
  readonly #random: Random
  /** Those with work, and those that fail. */
  readonly #gateways = new Map<string, Gateway>()
  readonly #proven = createCache<string, true>(MAX_KNOWN_GATEWAYS)
  /** Those whose next attempt is not yet due. */
  readonly #resting = new Resting<Waiting>()
  readonly #busy = new Set<Waiting>()
  readonly #turns = new Set<Promise<void>>()
  readonly #news = new Map<string, GatewayRow>()
  #unproven = 0
  #isClosed = false
  #timer: NodeJS.Timeout | undefined
  /** When it goes off, by the clock of `performance`. */
  #looksAt = 0
  #lookedAt = 0

  constructor({ clock, random }: { readonly clock: Clock; readonly random: Random }) {
    this.#clock = clock
    this.#random = random
  }

  start(rows: readonly GatewayRow[]): void {
    for (const { origin, ...row } of rows) this.#gateways.set(origin, new Gateway(origin, false, row))
  }

  /** Gives no more turns. */
  freeze(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
  }

  /** Waits for the turns that have begun. */
  async close(): Promise<void> {
    await Promise.all(this.#turns)
  }

  /** Failures of gateways that changed since the last call. */
  takeNews(): GatewayRow[] {
    const taken = [...this.#news.values()]
    this.#news.clear()
    return taken
  }

  /** Pushers that wait for a turn, and gateways that do not answer. */
  get use(): { readonly waiting: number; readonly failing: number } {
    let waiting = this.#resting.size
    let failing = 0
    for (const { line, failures } of this.#gateways.values()) {
      waiting += line.size
      if (failures > 0) failing += 1
    }
    return { waiting, failing }
  }

  /** Gives it a turn when its gateway has one, again and again until it has nothing to send. */
  ready(waiting: Waiting): void {
    const { dueAt } = waiting
    if (dueAt === undefined) this.#resting.delete(waiting)
    if (this.#isClosed || dueAt === undefined || this.#busy.has(waiting)) return
    const now = this.#clock.now()
    if (dueAt > now) {
      this.#resting.add(waiting, dueAt)
      this.#look(dueAt - now)
      return
    }
    this.#resting.delete(waiting)
    const gateway = this.#gatewayOf(waiting.origin)
    gateway.line.add(waiting)
    this.#serve(gateway)
  }

  #gatewayOf(origin: string): Gateway {
    const known = this.#gateways.get(origin)
    if (known) return known
    const gateway = new Gateway(origin, this.#proven.has(origin), { failures: 0, retry_at: 0 })
    this.#gateways.set(origin, gateway)
    return gateway
  }

  #mayBegin(gateway: Gateway): boolean {
    if (this.#isClosed || this.#turns.size >= MAX_PUSHES_AT_ONCE || !gateway.hasRoom) return false
    if (gateway.failures > 0 && gateway.retryAt > this.#clock.now()) return false
    return gateway.isProven || this.#unproven < MAX_PUSHES_TO_UNPROVEN_GATEWAYS
  }

  /** Begins as many turns at a gateway as it has room for. */
  #serve(gateway: Gateway): void {
    for (const waiting of gateway.line) {
      if (!this.#mayBegin(gateway)) {
        this.#look()
        return
      }
      gateway.line.delete(waiting)
      const turn = this.#take(gateway, waiting).finally(() => {
        this.#turns.delete(turn)
        this.#next(gateway)
      })
      this.#turns.add(turn)
    }
  }

  /** Gives the place of a turn that ended to the gateway that waits for one longest. */
  #next(gateway: Gateway): void {
    if (gateway.line.size + gateway.running + gateway.failures === 0) this.#gateways.delete(gateway.origin)
    if (this.#turns.size >= MAX_PUSHES_AT_ONCE - 1) for (const other of [...this.#gateways.values()]) this.#serve(other)
    else this.#serve(gateway)
  }

  async #take(gateway: Gateway, waiting: Waiting): Promise<void> {
    const wasUnproven = !gateway.isProven
    const begun = performance.now()
    this.#busy.add(waiting)
    // It is served last from now on.
    this.#gateways.delete(gateway.origin)
    this.#gateways.set(gateway.origin, gateway)
    gateway.running += 1
    if (wasUnproven) this.#unproven += 1
    const turn = await waiting.run()
    if (wasUnproven) this.#unproven -= 1
    gateway.running -= 1
    this.#busy.delete(waiting)
    if (turn === 'answered') this.#answered(gateway, performance.now() - begun)
    // A request that we end ourselves says nothing of its gateway.
    else if (turn === 'unanswered' && !this.#isClosed) this.#failed(gateway)
    this.ready(waiting)
  }

  #answered(gateway: Gateway, tookMs: number): void {
    gateway.isProven = tookMs < SLOW_PUSH_MS
    if (gateway.isProven) this.#proven.set(gateway.origin, true)
    else this.#proven.delete(gateway.origin)
    if (gateway.failures === 0) return
    gateway.failures = 0
    gateway.retryAt = 0
    this.#tell(gateway)
  }

  #failed(gateway: Gateway): void {
    gateway.isProven = false
    this.#proven.delete(gateway.origin)
    // Requests that were on their way at the first failure count as one with it.
    if (gateway.failures > 0 && gateway.retryAt > this.#clock.now()) return
    gateway.failures += 1
    gateway.retryAt = this.#clock.now() + pauseAfter(gateway.failures, PUSH_PAUSES, this.#random)
    this.#tell(gateway)
  }

  #tell({ origin, failures, retryAt }: Gateway): void {
    this.#news.set(origin, { origin, failures, retry_at: retryAt })
  }

  /** Nothing was sent to it for long. */
  #forget({ origin, failures }: Gateway): void {
    this.#gateways.delete(origin)
    if (failures > 0) this.#news.set(origin, { origin, failures: 0, retry_at: 0 })
  }

  /** @param inMs when something is due */
  #look(inMs = LOOK_EVERY_MS): void {
    if (this.#isClosed) return
    const waitMs = Math.min(LOOK_EVERY_MS, Math.max(LOOK_AFTER_MS, inMs))
    const looksAt = performance.now() + waitMs
    if (this.#timer !== undefined && this.#looksAt <= looksAt) return
    clearTimeout(this.#timer)
    this.#looksAt = looksAt
    this.#timer = setTimeout(() => this.#lookNow(), waitMs).unref()
  }

  #lookNow(): void {
    this.#timer = undefined
    const now = this.#clock.now()
    // If the clock was moved back, all are due at another time.
    const due = now < this.#lookedAt ? this.#resting.takeAll() : this.#resting.takeDue(now)
    this.#lookedAt = now
    for (const waiting of due) this.ready(waiting)
    for (const gateway of [...this.#gateways.values()]) {
      // If the clock was moved back, a pause must not last for ever.
      if (gateway.retryAt > now + 2 * PUSH_PAUSES.longestMs) gateway.retryAt = 0
      if (gateway.line.size > 0) this.#serve(gateway)
      else if (gateway.running === 0 && gateway.retryAt + PUSH_PAUSES.longestMs < now) this.#forget(gateway)
    }
    const { nextAt } = this.#resting
    if (nextAt !== undefined) this.#look(nextAt - now)
  }
}
