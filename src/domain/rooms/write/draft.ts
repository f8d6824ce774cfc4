import { ProtocolError } from '../../../core/errors.ts'
import { type EventId, isUserId, type UserId } from '../../../core/ids.ts'
import type { JsonObject } from '../../../core/json.ts'
import type { StateMap } from '../../../core/state/trie.ts'
import type { TxnWrite } from '../../../store/events/event-writes.ts'
import type { EventThread, ThreadFollowers } from '../../push/thread-followers.ts'
import type { Room } from '../room/room.ts'
import type { RoomEvent } from '../room/room-event.ts'

/** An event that a local user wants to send. */
export interface Draft {
  readonly type: string
  /** Present on state events. */
  readonly stateKey?: string
  readonly content: JsonObject
  readonly sender: UserId
  readonly senderNid: number
  /** The event that a redaction redacts. */
  readonly redacts?: EventId
  /** Milliseconds; now when left out. */
  readonly ts?: number
  /** How long it is sticky, in milliseconds. */
  readonly stickyMs?: number
  /** Its id in room versions where the sender chooses that; a new one when left out. */
  readonly eventId?: EventId
}

/** The transaction id under which a client sent something. */
export interface Transaction {
  readonly tokenNid: number
  /** Earlier logins of the device, for which the same id means the same request. */
  readonly earlierTokens: readonly number[]
  readonly txnId: string
  /** Hash of the request's path. */
  readonly hash: string
}

/** Reads the state of a head: events that the room holds first, then events of the same unit, which no cache has yet. */
export type StateReader = (type: string, stateKey: string) => RoomEvent | undefined

/** Whether a draft changes a membership that the resync has not fetched yet. */
export function concernsUnknownMember(room: Room, drafts: readonly Draft[]): boolean {
  if (!room.partialState?.lacksMembers) return false
  const { state } = room.pending
  return drafts.some(
    ({ type, stateKey }) => type === 'm.room.member' && room.stateNid(state, type, stateKey ?? '') === 0,
  )
}

/** The users whose membership changes. They need numbers, but only once the change is known to be allowed. */
export function membersIn(drafts: readonly Draft[]): UserId[] {
  return drafts.flatMap(({ type, stateKey }) => {
    if (type !== 'm.room.member' || stateKey === undefined) return []
    if (!isUserId(stateKey))
      throw new ProtocolError('M_INVALID_PARAM', 'Only users are members, and this is no user id.')
    return [stateKey]
  })
}

/** Whether the state that some drafts set has changed since they were made, so that their maker has not seen it. */
export function replacesOthers(room: Room, drafts: readonly Draft[], planned: StateMap): boolean {
  const { state } = room.pending
  if (state === planned) return false
  return drafts.some(
    ({ type, stateKey }) =>
      stateKey !== undefined && room.stateNid(state, type, stateKey) !== room.stateNid(planned, type, stateKey),
  )
}

/** How a commit remembers the transaction that an event was sent in. */
export function txnWrite(
  room: Room,
  event: RoomEvent | undefined,
  transaction: Transaction | undefined,
): TxnWrite | undefined {
  if (!transaction || !event) return undefined
  return {
    tokenNid: transaction.tokenNid,
    earlierTokens: transaction.earlierTokens,
    hash: transaction.hash,
    roomNid: room.nid,
    eventNid: event.nid,
    ts: event.ts,
  }
}

/** The threads that drafts are in. */
export async function threadsOf(
  room: Room,
  drafts: readonly Draft[],
  noticing: Pick<ThreadFollowers, 'threadOf'>,
): Promise<ReadonlyMap<Draft, EventThread>> {
  const threads = new Map<Draft, EventThread>()
  for (const draft of drafts) {
    const finding = noticing.threadOf(room, { isState: draft.stateKey !== undefined, content: draft.content })
    const thread = finding instanceof Promise ? await finding : finding
    if (thread !== undefined) threads.set(draft, thread)
  }
  return threads
}
