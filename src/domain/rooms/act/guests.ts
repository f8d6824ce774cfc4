import { ProtocolError } from '../../../core/errors.ts'
import { guestAccessOf, membershipOf } from '../../../core/event/content.ts'
import { getState } from '../../../core/state/trie.ts'
import type { Database } from '../../../store/db/db.ts'
import { type GuestRow, getJoinedGuests, getRoomsOfGuests } from '../../../store/rooms/room-members.ts'
import type { RoomRegistry } from '../room/registry.ts'
import type { Room } from '../room/room.ts'
import type { Appender } from '../write/append.ts'
import type { Draft } from '../write/draft.ts'
import type { Unit } from '../write/unit.ts'

/** The rooms that may have closed to guests. */
export interface GuestRooms {
  /** Called for each unit right after its commit. */
  committed(unit: Pick<Unit, 'room' | 'before' | 'after' | 'redactions'>): void
  /** Commits happened without a call to `committed`: all rooms with guests are checked again. */
  missed(): void
  onWake(listener: () => void): void
  /** Rooms to check. */
  readonly due: Set<number>
  /** Whether all rooms with guests must be checked. The caller then checks them: the next call gives false. */
  takeSurvey(): boolean
}

/** Removes guests from rooms that stop being open to them (client-server API, "Guest Access"). */
export interface Guests {
  onWake(listener: () => void): void
  /** Makes guests leave where they must. The first call checks all rooms with guests, because an earlier process may not have got to it. */
  putOut(isClosed: () => boolean): Promise<void>
}

/** Guests who leave in one commit. */
const AT_ONCE = 50

const GUEST_ACCESS = 'm.room.guest_access'

/** @throws ProtocolError `M_GUEST_ACCESS_FORBIDDEN` unless the room is open to guests, counting events that are not written yet */
export async function admitGuest(room: Room): Promise<void> {
  if (await isOpen(room)) return
  throw new ProtocolError('M_GUEST_ACCESS_FORBIDDEN', 'Guests may not join this room.')
}

async function isOpen(room: Room): Promise<boolean> {
  return guestAccessOf(await room.stateEvent(GUEST_ACCESS, '', room.pending.state)) === 'can_join'
}

/** Whether a unit may have changed the guest access of its room. */
function concernsGuests({ room, before, after, redactions }: Parameters<GuestRooms['committed']>[0]): boolean {
  if (redactions.some(({ event }) => event.type === GUEST_ACCESS)) return true
  if (before.state === after.state) return false
  const keyId = room.keys.idOf(GUEST_ACCESS, '')
  return keyId !== undefined && getState(before.state, keyId) !== getState(after.state, keyId)
}

export function createGuestRooms(): GuestRooms {
  const due = new Set<number>()
  let isSurveyed = false
  let wake = () => {}
  return {
    due,
    committed(unit) {
      if (!concernsGuests(unit)) return
      due.add(unit.room.nid)
      wake()
    },
    missed() {
      isSurveyed = false
      wake()
    },
    onWake(listener) {
      wake = listener
    },
    takeSurvey() {
      const isDue = !isSurveyed
      isSurveyed = true
      return isDue
    },
  }
}

export function createGuests(parts: {
  readonly db: Database
  readonly rooms: Pick<GuestRooms, 'due' | 'takeSurvey' | 'onWake'>
  readonly registry: Pick<RoomRegistry, 'getByNid'>
  readonly appender: Pick<Appender, 'append'>
}): Guests {
  const { db, rooms, registry, appender } = parts
  const { due } = rooms

  async function leavesOf(room: Room, guests: readonly GuestRow[]): Promise<Draft[]> {
    if (await isOpen(room)) return []
    const drafts: Draft[] = []
    for (const { user_id: userId, user_nid: senderNid } of guests) {
      const member = await room.stateEvent('m.room.member', userId, room.pending.state)
      if (membershipOf(member) !== 'join') continue
      const content = { membership: 'leave', reason: 'This room is no longer open to guests.' }
      drafts.push({ type: 'm.room.member', stateKey: userId, content, sender: userId, senderNid })
    }
    return drafts
  }

  async function empty(roomNid: number): Promise<void> {
    const guests = await getJoinedGuests(db, roomNid)
    if (guests.length === 0) return
    const { id } = await registry.getByNid(roomNid)
    for (let start = 0; start < guests.length; start += AT_ONCE) {
      const some = guests.slice(start, start + AT_ONCE)
      await appender.append(id, (room) => leavesOf(room, some))
    }
  }

  return {
    onWake: rooms.onWake,
    async putOut(isClosed) {
      if (rooms.takeSurvey()) for (const roomNid of await getRoomsOfGuests(db)) due.add(roomNid)
      for (const roomNid of due) {
        if (isClosed()) return
        due.delete(roomNid)
        try {
          await empty(roomNid)
        } catch (error) {
          // The room refuses the leave, for example because it is being removed.
          if (error instanceof ProtocolError && error.errcode === 'M_FORBIDDEN') continue
          due.add(roomNid)
          throw error
        }
      }
    },
  }
}
