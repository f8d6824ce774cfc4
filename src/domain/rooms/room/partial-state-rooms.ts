import type { Logger } from 'pino'
import type { EventId, ServerName } from '../../../core/ids.ts'
import type { Database } from '../../../store/db/db.ts'
import { roomsWithHeldReceipts } from '../../../store/federation/held-receipts.ts'
import {
  countHeld,
  getFillings,
  insertFilling,
  noteFailure,
  removeAllHeld,
  removeFilling,
  setFilled,
} from '../../../store/rooms/room-fillings.ts'
import type { Clock } from '../../clock.ts'
import { Filling } from './partial-state.ts'
import type { MembershipChange, Room } from './room.ts'

/** The rooms whose members are still to come, and when those came of the others that were once so. */
export interface Fillings {
  of(roomNid: number): Filling | undefined
  all(): readonly Filling[]
  /** The position in the stream at which a room became whole; undefined for one that always was, and for one that is not. */
  filledAt(roomNid: number): number | undefined
  /** Begins, before the join is written: should that never be, nothing speaks of it but a row that is not looked at. */
  open(
    room: Room,
    of: { readonly resident: ServerName; readonly servers: readonly ServerName[]; readonly joinId: EventId },
  ): Promise<Filling>
  failed(filling: Filling, reason: string): Promise<void>
  filled(filling: Filling, position: number): Promise<void>
  /** What had to wait is taken in. */
  end(filling: Filling): void
  /** Memberships were committed: a room that nobody of ours is in any more is filled no further. */
  changed(room: Room, members: readonly Pick<MembershipChange, 'isLocal'>[]): void
  /** Nobody of ours is in the room any more: what is known of it is who is told of that. */
  leave(filling: Filling): Promise<void>
  /** A room that was left was joined anew, and is known by that. */
  supersede(filling: Filling): Promise<void>
  /** The join came to nothing. */
  abandon(filling: Filling): Promise<void>
}

/** A position that everybody is past. */
const NEVER = 0

export async function openFillings(parts: {
  readonly db: Database
  readonly clock: Clock
  readonly log: Pick<Logger, 'warn'>
}): Promise<Fillings> {
  const { db, clock } = parts
  const open = new Map<number, Filling>()
  const filledAt = new Map<number, number>()
  const held = await countHeld(db)
  const withReceipts = await roomsWithHeldReceipts(db)

  for (const row of await getFillings(db)) {
    const waiting = held.filter(({ room_nid }) => room_nid === row.room_nid)
    if (row.filled_at !== null) filledAt.set(row.room_nid, row.filled_at)
    if (row.filled_at !== null && waiting.length === 0 && !withReceipts.has(row.room_nid)) continue
    const { room_nid: roomNid, room_id: roomId, join_event_id: joinId, resident, servers, failures } = row
    const filling = new Filling({ roomNid, roomId, joinId, resident, servers, failures })
    for (const { origin, count, bytes } of waiting) filling.held.set(origin, { count, bytes })
    if (row.filled_at !== null) filling.filled()
    open.set(roomNid, filling)
  }

  async function abandon(filling: Filling): Promise<void> {
    filling.end()
    if (open.get(filling.roomNid) === filling) open.delete(filling.roomNid)
    await db.tx((tx) => removeFilling(tx, filling.roomNid))
  }

  async function supersede(filling: Filling): Promise<void> {
    filling.filled()
    open.delete(filling.roomNid)
    await db.tx((tx) => setFilled(tx, filling.roomNid, NEVER))
  }

  async function leave(filling: Filling): Promise<void> {
    filling.end()
    await db.tx((tx) => removeAllHeld(tx, filling.roomNid))
  }

  return {
    abandon,
    leave,
    supersede,
    of: (roomNid) => open.get(roomNid),
    all: () => [...open.values()].filter(({ holdsEvents }) => holdsEvents),
    filledAt: (roomNid) => filledAt.get(roomNid),
    async open(room, { resident, servers, joinId }) {
      const row = { room_nid: room.nid, resident, servers, join_event_id: joinId, since: clock.now() }
      await db.tx((tx) => insertFilling(tx, row))
      const filling = new Filling({ roomNid: room.nid, roomId: room.id, resident, servers, joinId })
      open.set(room.nid, filling)
      filledAt.delete(room.nid)
      return filling
    },
    async failed(filling, reason) {
      filling.failures++
      await db.tx((tx) => noteFailure(tx, filling.roomNid, filling.failures, reason))
    },
    async filled(filling, position) {
      await db.tx((tx) => setFilled(tx, filling.roomNid, position))
      if (!filling.holdsEvents) return
      filledAt.set(filling.roomNid, position)
      filling.filled()
    },
    end(filling) {
      filling.end()
      open.delete(filling.roomNid)
    },
    changed({ id, filling, localMembers }, members) {
      if (!filling?.holdsEvents || localMembers.size > 0 || !members.some(({ isLocal }) => isLocal)) return
      // Should they stay, the next start finds nobody in the room.
      leave(filling).catch((err) => parts.log.warn({ err, roomId: id }, 'what waited for a room could not be removed'))
    },
  }
}
