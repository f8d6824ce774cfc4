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

/** The rooms with partial state, and the stream positions at which earlier ones became complete. */
export interface PartialStateRooms {
  of(roomNid: number): PartialState | undefined
  all(): readonly PartialState[]
  /**
   * The stream position at which a room's state became complete. Undefined for a room that never had partial state, and for one that still
   * has it.
   */
  completeAt(roomNid: number): number | undefined
  /** Writes the row before the join is written. If the join is never written, the row has no effect. */
  open(
    room: Room,
    of: { readonly resident: ServerName; readonly servers: readonly ServerName[]; readonly joinId: EventId },
  ): Promise<PartialState>
  failed(partialState: PartialState, reason: string): Promise<void>
  /** The members of a room came with a commit. Its position is not published yet, so no sync token is past it. */
  resynced(write: Pick<ResyncWrite, 'roomNid' | 'joinId' | 'position'>): void
  /** All held events are processed. */
  end(partialState: PartialState): void
  /** Memberships were committed. A room without users of ours needs no resync any more. */
  changed(room: Room, members: readonly Pick<MembershipChange, 'isLocal'>[]): void
  /** No user of ours is in the room any more. The row stays: it still says which servers get events such as the leave. */
  leave(partialState: PartialState): Promise<void>
  /** A room that we had left was joined again; the new join replaces the old partial state. */
  supersede(partialState: PartialState): Promise<void>
  /** The join failed. */
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
      // If the held events stay, the next start finds that no user of ours is in the room, and removes them.
      leave(partialState).catch((err) =>
        parts.log.warn({ err, roomId: id }, 'what waited for a room could not be removed'),
      )
    },
  }
}
