import type { Logger } from 'pino'
import { authorise } from '../../../core/auth/rules.ts'
import { authEventKeys } from '../../../core/auth/select.ts'
import { readPdu } from '../../../core/event/read.ts'
import type { RoomId } from '../../../core/ids.ts'
import type { KeyedQueue } from '../../../core/keyed-queue.ts'
import { APPEAL_AFTER_MS } from '../../limits/sticky-events.ts'
import type { Head } from '../room/head.ts'
import type { RoomRegistry } from '../room/registry.ts'
import type { Room } from '../room/room.ts'
import { RoomEvent } from '../room/room-event.ts'
import type { Persister } from '../write/persister.ts'
import type { PolicyGate } from '../write/policy-gate.ts'
import type { StickyAppeals } from '../write/sticky-appeals.ts'
import { keyWrites, NO_GRAPH, type Unit } from '../write/unit.ts'
import { isRefusal } from './pdu-checks.ts'
import { ALWAYS_LOOKED_AT, stateLookup } from './placing-checks.ts'

export interface StickyReviewParts {
  readonly registry: RoomRegistry
  readonly roomQueue: KeyedQueue<RoomId>
  readonly persister: Persister
  readonly policies: Pick<PolicyGate, 'objection'>
  readonly appeals: StickyAppeals
  readonly log: Logger
}

/** How often an event is tried again because others wrote to the room meanwhile. */
const MAX_ATTEMPTS = 8

/**
 * Judges soft-failed events again when the state of their room has changed, as long as they are sticky (MSC4354): of several servers, all
 * must come to have the same sticky events. One that is accepted comes into the timeline where the room is now, and no event builds on it.
 */
export function startStickyReviews({
  registry,
  roomQueue,
  persister,
  policies,
  appeals,
  log,
}: StickyReviewParts): void {
  const waiting = new Set<number>()

  /** Whether an event is excluded no more. */
  async function isAcceptable(room: Room, head: Head, event: RoomEvent): Promise<boolean> {
    const keys = [...ALWAYS_LOOKED_AT, ...authEventKeys(room.version, event.pdu)]
    if (!authorise(room.version, event.pdu, await stateLookup(room, head.state, keys)).allowed) return false
    const read = readPdu(room.version, { ...event.pdu })
    return !isRefusal(read) && (await policies.objection(room, read)) === undefined
  }

  async function reconsider(roomNid: number, nid: number): Promise<void> {
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const room = await registry.getByNid(roomNid)
      const head = room.pending
      if (room.partialState?.lacksMembers) return
      const event = (await room.events([nid])).get(nid)
      if (event?.standing !== 'soft-failed' || event.redactedBy !== undefined) return
      if (!(await isAcceptable(room, head, event))) return
      // There must be no await between this check and the queueing.
      if (!room.alive || room.pending !== head) continue
      const unit = accepting(room, head, event, persister.takeNid())
      room.enqueued(unit)
      if ((await persister.enqueue(unit)).kind === 'committed') return
    }
  }

  async function review(roomNid: number): Promise<void> {
    waiting.delete(roomNid)
    const { id } = await registry.getByNid(roomNid)
    // One by one: a policy server that is asked may be slow, and other events must not wait for all of them.
    for (const { nid } of appeals.of(roomNid)) await roomQueue.run(id, () => reconsider(roomNid, nid))
  }

  appeals.onDue((roomNid) => {
    if (waiting.has(roomNid)) return
    waiting.add(roomNid)
    const failed = (err: unknown) => log.warn({ err, roomNid }, 'soft-failed events could not be judged again')
    setTimeout(() => void review(roomNid).catch(failed), APPEAL_AFTER_MS).unref()
  })
}

/** What is written when an event comes into the timeline after all. It counts as read: only sync brings it. */
function accepting(room: Room, head: Head, event: RoomEvent, streamPos: number): Unit {
  const pos = head.pos + 1
  const shown = new RoomEvent({
    ...event.toRow(),
    room_pos: pos,
    stream_pos: streamPos,
    notifiable: head.notifiable,
    current_chain: head.chain,
    current_seq: head.seq,
    standing: null,
    reason: null,
  })
  return {
    ...NO_GRAPH,
    room,
    before: head,
    after: { ...head, version: head.version + 1, pos, nid: streamPos },
    events: [],
    promoted: [shown],
    keys: keyWrites(room),
    changes: [],
    members: [],
    unread: [],
    txn: undefined,
    redactions: [],
  }
}
