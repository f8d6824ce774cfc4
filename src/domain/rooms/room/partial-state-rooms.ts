import type { Logger } from 'pino'
import type { EventId, ServerName } from '../../../core/ids.ts'
import type { Database } from '../../../store/db/db.ts'
import type { ResyncWrite } from '../../../store/events/event-writes.ts'
import { roomsWithHeldReceipts } from '../../../store/federation/held-receipts.ts'
import {
  countHeld,
  getPartialStateRooms,
  insertPartialState,
  noteFailure,
  removeAllHeld,
  removePartialState,
  setSuperseded,
} from '../../../store/rooms/partial-state-rooms.ts'
import type { Clock } from '../../clock.ts'
import { PartialState } from './partial-state.ts'
import type { MembershipChange, Room } from './room.ts'

/** The rooms whose members are still to come, and when those came of the others that were once so. */
export interface PartialStateRooms {
  of(roomNid: number): PartialState | undefined
  all(): readonly PartialState[]
  /** The position in the stream at which a room became whole; undefined for one that always was, and for one that is not. */
  completeAt(roomNid: number): number | undefined
  /** Begins, before the join is written: should that never be, nothing speaks of it but a row that is not looked at. */
  open(
    room: Room,
    of: { readonly resident: ServerName; readonly servers: readonly ServerName[]; readonly joinId: EventId },
  ): Promise<PartialState>
  failed(partialState: PartialState, reason: string): Promise<void>
  /** The members of a room came with a commit, whose position is not published yet: nobody's token is past it. */
  resynced(write: Pick<ResyncWrite, 'roomNid' | 'joinId' | 'position'>): void
  /** What had to wait is taken in. */
  end(partialState: PartialState): void
  /** Memberships were committed: a room that nobody of ours is in any more needs no resync any more. */
  changed(room: Room, members: readonly Pick<MembershipChange, 'isLocal'>[]): void
  /** Nobody of ours is in the room any more: what is known of it is who is told of that. */
  leave(partialState: PartialState): Promise<void>
  /** A room that was left was joined anew, and is known by that. */
  supersede(partialState: PartialState): Promise<void>
  /** The join came to nothing. */
  abandon(partialState: PartialState): Promise<void>
}

export async function openPartialStateRooms(parts: {
  readonly db: Database
  readonly clock: Clock
  readonly log: Pick<Logger, 'warn'>
}): Promise<PartialStateRooms> {
  const { db, clock } = parts
  const open = new Map<number, PartialState>()
  const completeAt = new Map<number, number>()
  const held = await countHeld(db)
  const withReceipts = await roomsWithHeldReceipts(db)

  for (const row of await getPartialStateRooms(db)) {
    const waiting = held.filter(({ room_nid }) => room_nid === row.room_nid)
    if (row.filled_at !== null) completeAt.set(row.room_nid, row.filled_at)
    if (row.filled_at !== null && waiting.length === 0 && !withReceipts.has(row.room_nid)) continue
    const { room_nid: roomNid, room_id: roomId, join_event_id: joinId, resident, servers, failures } = row
    const partialState = new PartialState({ roomNid, roomId, joinId, resident, servers, failures })
    for (const { origin, count, bytes } of waiting) partialState.held.set(origin, { count, bytes })
    if (row.filled_at !== null) partialState.complete()
    open.set(roomNid, partialState)
  }

  async function abandon(partialState: PartialState): Promise<void> {
    partialState.end()
    if (open.get(partialState.roomNid) === partialState) open.delete(partialState.roomNid)
    await db.tx((tx) => removePartialState(tx, partialState.roomNid))
  }

  async function supersede(partialState: PartialState): Promise<void> {
    partialState.complete()
    open.delete(partialState.roomNid)
    await db.tx((tx) => setSuperseded(tx, partialState.roomNid))
  }

  async function leave(partialState: PartialState): Promise<void> {
    partialState.end()
    await db.tx((tx) => removeAllHeld(tx, partialState.roomNid))
  }

  return {
    abandon,
    leave,
    supersede,
    of: (roomNid) => open.get(roomNid),
    all: () => [...open.values()].filter(({ holdsEvents }) => holdsEvents),
    completeAt: (roomNid) => completeAt.get(roomNid),
    async open(room, { resident, servers, joinId }) {
      const row = { room_nid: room.nid, resident, servers, join_event_id: joinId, since: clock.now() }
      await db.tx((tx) => insertPartialState(tx, row))
      const partialState = new PartialState({ roomNid: room.nid, roomId: room.id, resident, servers, joinId })
      open.set(room.nid, partialState)
      completeAt.delete(room.nid)
      return partialState
    },
    async failed(partialState, reason) {
      partialState.failures++
      await db.tx((tx) => noteFailure(tx, partialState.roomNid, partialState.failures, reason))
    },
    resynced({ roomNid, joinId, position }) {
      const partialState = open.get(roomNid)
      if (partialState?.joinId !== joinId || !partialState.holdsEvents) return
      completeAt.set(roomNid, position)
      partialState.complete()
    },
    end(partialState) {
      partialState.end()
      open.delete(partialState.roomNid)
    },
    changed({ id, partialState, localMembers }, members) {
      if (!partialState?.holdsEvents || localMembers.size > 0 || !members.some(({ isLocal }) => isLocal)) return
      // Should they stay, the next start finds nobody in the room.
      leave(partialState).catch((err) =>
        parts.log.warn({ err, roomId: id }, 'what waited for a room could not be removed'),
      )
    },
  }
}
