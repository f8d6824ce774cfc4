import { hash } from 'node:crypto'
import type { Logger } from 'pino'
import type { Config } from '../../config/schema.ts'
import { ProtocolError } from '../../core/errors.ts'
import { MAX_FIELD_BYTES } from '../../core/event/format.ts'
import { groupBy } from '../../core/group-by.ts'
import type { EventId, RoomId } from '../../core/ids.ts'
import type { JsonObject } from '../../core/json.ts'
import { createKeyedQueue } from '../../core/keyed-queue.ts'
import { writeJson } from '../../core/large-integers.ts'
import type { Database } from '../../store/db/db.ts'
import {
  type DelayedEventRow,
  dueDelayedEvents,
  finaliseDelayedEvent,
  findDelayedByTxn,
  findDelayedEvent,
  firstDueAt,
  insertDelayedEvent,
  postponeDelayedEvent,
  restartDelayedEvent,
  scheduledOf,
} from '../../store/rooms/delayed-events.ts'
import type { Requester } from '../accounts/requester.ts'
import type { Clock, Random } from '../clock.ts'
import {
  DELAYED_PATIENCE_MS,
  DELAYED_PAUSE_MS,
  DELAYED_RETRY_MS,
  DELAYED_ROOMS_AT_ONCE,
  DELAYED_SENT_AT_ONCE,
  MAX_FINALISED_DELAYED_BYTES_PER_USER,
  MAX_FINALISED_DELAYED_PER_USER,
  MAX_SLOW_DELAYED_ROOMS,
} from '../limits/delayed-events.ts'
import type { SentContent } from '../rooms/act/rooms.ts'
import type { ClientTransaction } from '../rooms/write/transactions.ts'
import { describeDelayedEvent } from './description.ts'
import { createDelayedQuota } from './quota.ts'
import { createRoomTasks } from './room-tasks.ts'
import type { SendDelayed } from './sending.ts'

export interface DelayedWish extends SentContent {
  readonly roomId: RoomId
  readonly type: string
  /** Undefined for a message event. */
  readonly stateKey: string | undefined
  readonly delayMs: number
  /** Undefined: each request schedules another event. */
  readonly transaction: ClientTransaction | undefined
  /** Whether the request has the form of the first drafts, whose clients look for another error. */
  readonly isOldForm: boolean
}

export type DelayedAction = 'send' | 'cancel' | 'restart'

/**
 * Events that users have sent later (MSC4140). A row keeps each until it is sent, so that a restart loses none. All that happens to one
 * event happens one after another, so that it has one outcome.
 */
export interface DelayedEvents {
  /**
   * @returns the `delay_id`
   * @throws ProtocolError `M_FORBIDDEN` for a longer delay than operators allow, `M_LIMIT_EXCEEDED` for too many, `M_TOO_LARGE`
   */
  schedule(by: Requester, wish: DelayedWish): Promise<string>
  /**
   * @param by undefined for a caller without a token: who knows the id may act
   * @throws ProtocolError `M_NOT_FOUND`; `M_UNKNOWN` (409) if it has ended otherwise; what sending throws
   */
  act(by: Requester | undefined, delayId: string, action: DelayedAction): Promise<void>
  /** @throws ProtocolError `M_NOT_FOUND` */
  get(by: Requester, delayId: string): Promise<JsonObject>
  /** What waits, the first to be sent first. */
  list(by: Requester): Promise<readonly JsonObject[]>
  /** Sends what is due. Asks the database only when something may be. @param isOver asked between events */
  sendDue(isOver: () => boolean): Promise<void>
}

export interface DelayedEventParts {
  readonly config: Pick<Config, 'calls'>
  readonly db: Database
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly send: SendDelayed
}

const ID_BYTES = 16
const KEPT = { events: MAX_FINALISED_DELAYED_PER_USER, bytes: MAX_FINALISED_DELAYED_BYTES_PER_USER }
const TASKS = { atOnce: DELAYED_ROOMS_AT_ONCE, patienceMs: DELAYED_PATIENCE_MS, mostSlow: MAX_SLOW_DELAYED_ROOMS }

export function createDelayedEvents(parts: DelayedEventParts): DelayedEvents {
  const { db, clock, log } = parts
  const quota = createDelayedQuota(parts)
  const turns = createKeyedQueue<string>()
  const usersTurns = createKeyedQueue<number>()
  const tasks = createRoomTasks(TASKS)
  /** Nothing is due before this time. */
  let quietUntil = 0

  const finalise = (row: DelayedEventRow, outcome: { readonly eventId?: EventId; readonly error?: string }) =>
    db.tx((tx) => finaliseDelayedEvent(tx, row, { at: clock.now(), ...outcome }, KEPT))

  async function own(by: Requester | undefined, delayId: string): Promise<DelayedEventRow> {
    const row = delayId.includes('\0') ? undefined : await findDelayedEvent(db, delayId)
    if (row === undefined || (by !== undefined && by.userNid !== row.user_nid)) throw notThere()
    return row
  }

  /** The answer to an action on an event that has ended. */
  function mustMatch({ event_id }: DelayedEventRow, action: DelayedAction): void {
    const wasSent = event_id !== null
    if (action === (wasSent ? 'send' : 'cancel')) return
    // Clients in a call schedule another one when they hear that it is gone.
    if (action === 'restart' && wasSent) throw notThere()
    const outcome = wasSent ? 'was sent' : 'was cancelled, or could not be sent'
    throw new ProtocolError('M_UNKNOWN', `This delayed event ${outcome} already.`, { status: 409 })
  }

  async function actInTurn(by: Requester | undefined, delayId: string, action: DelayedAction): Promise<void> {
    const row = await own(by, delayId)
    if (row.finalised_at !== null) return mustMatch(row, action)
    if (action === 'restart') return db.tx((tx) => restartDelayedEvent(tx, delayId, clock.now()))
    return finalise(row, action === 'send' ? { eventId: await parts.send(row) } : {})
  }

  /** It is not the event's fault. Others must not wait behind it. */
  async function postpone(delayId: string, err: unknown): Promise<void> {
    const isLimited = err instanceof ProtocolError && err.errcode === 'M_LIMIT_EXCEEDED'
    if (!isLimited) log.warn({ err }, 'a delayed event could not be sent; it will be tried again')
    await db.tx((tx) => postponeDelayedEvent(tx, delayId, clock.now() + DELAYED_RETRY_MS))
  }

  async function sendInTurn(delayId: string): Promise<void> {
    const row = await findDelayedEvent(db, delayId)
    if (row === undefined || row.finalised_at !== null || row.due_at > clock.now()) return
    try {
      await finalise(row, { eventId: await parts.send(row) })
    } catch (error) {
      if (!isFinal(error)) return postpone(delayId, error)
      log.info({ delay_id: delayId.slice(0, 4), reason: error.message }, 'a delayed event could not be sent')
      await finalise(row, { error: JSON.stringify(error) })
    }
  }

  /** Events of one room one after another, in the order of their times. False if some must be tried again. */
  async function sendAll(due: readonly Pick<DelayedEventRow, 'delay_id' | 'room_id'>[], isOver: () => boolean) {
    let isDone = true
    const rooms = [...groupBy(due, ({ room_id }) => room_id)].map(([roomId, ofRoom]) => ({
      roomId,
      async work() {
        try {
          for (const { delay_id } of ofRoom) if (!isOver()) await turns.run(delay_id, () => sendInTurn(delay_id))
        } catch (err) {
          isDone = false
          log.warn({ err }, 'delayed events of a room could not be sent; they will be tried again')
        }
      },
    }))
    await tasks.run(rooms, () => {
      quietUntil = Math.min(quietUntil, clock.now())
    })
    return isDone
  }

  async function insert(by: Requester, wish: DelayedWish, content: string): Promise<string> {
    const { transaction, delayMs } = wish
    const txn = transaction && {
      tokenNid: by.tokenNid,
      hash: hash('sha256', transaction.path, 'base64url').slice(0, 22),
    }
    const earlier = transaction?.ofSession ? [] : (by.earlierTokens ?? [])
    const before = txn && (await findDelayedByTxn(db, [txn.tokenNid, ...earlier], txn.hash))
    if (before !== undefined) return before
    await quota.take(by, Buffer.byteLength(content))
    const delayId = parts.random.bytes(ID_BYTES).toString('base64url')
    const scheduledAt = clock.now()
    const { roomId, type, stateKey, offence, ts, stickyMs } = wish
    const what = { delayId, userNid: by.userNid, txn, roomId, type, stateKey, content, offence, ts, stickyMs }
    await db.tx((tx) => insertDelayedEvent(tx, { ...what, isUnlimited: by.isUnlimited === true, delayMs, scheduledAt }))
    quietUntil = Math.min(quietUntil, scheduledAt + delayMs)
    return delayId
  }

  return {
    async schedule(by, wish) {
      mustBeEvent(wish)
      quota.mustBeAllowed(wish)
      const content = writeJson(wish.content)
      return usersTurns.run(by.userNid, () => insert(by, wish, content))
    },
    act: (by, delayId, action) => turns.run(delayId, () => actInTurn(by, delayId, action)),
    get: async (by, delayId) => describeDelayedEvent(await own(by, delayId)),
    list: async (by) => (await scheduledOf(db, by.userNid)).map(describeDelayedEvent),
    async sendDue(isOver) {
      const now = clock.now()
      if (now < quietUntil) return
      // Where something fails. What is scheduled meanwhile lowers it again.
      quietUntil = now + DELAYED_PAUSE_MS
      for (let isFull = true; isFull; ) {
        const due = await dueDelayedEvents(db, clock.now(), DELAYED_SENT_AT_ONCE, tasks.slow())
        if (!(await sendAll(due, isOver)) || isOver()) return
        isFull = due.length === DELAYED_SENT_AT_ONCE
      }
      quietUntil = Number.POSITIVE_INFINITY
      const first = await firstDueAt(db, tasks.slow())
      quietUntil = Math.min(quietUntil, first ?? Number.POSITIVE_INFINITY)
    },
  }
}

/** Whether the event is refused for good. Otherwise something fails here, or its user sends too much just now. */
function isFinal(error: unknown): error is ProtocolError {
  return error instanceof ProtocolError && error.status < 500 && error.errcode !== 'M_LIMIT_EXCEEDED'
}

/** No event has a longer type or state key, so none is kept until it is due. */
function mustBeEvent({ type, stateKey = '' }: DelayedWish): void {
  for (const [name, text] of Object.entries({ type, state_key: stateKey })) {
    if (Buffer.byteLength(text) <= MAX_FIELD_BYTES) continue
    throw new ProtocolError('M_TOO_LARGE', `${name} is longer than ${MAX_FIELD_BYTES} bytes.`)
  }
}

function notThere(): ProtocolError {
  return new ProtocolError('M_NOT_FOUND', 'There is no such delayed event.')
}
