import { createCache } from '../../../core/cache.ts'
import type { RoomId, UserId } from '../../../core/ids.ts'
import type { Requester } from '../../accounts/requester.ts'
import type { Clock } from '../../clock.ts'
import { MAX_ROOMS_WITH_TYPING, MAX_TYPING_MS, MAX_TYPING_PER_ROOM } from '../../limits.ts'
import type { Room } from '../room/room.ts'
import type { RoomAccess } from '../room/room-access.ts'
import type { Viewer } from '../room/viewer.ts'

/** Who types in rooms. Kept in memory, because it is over in seconds. */
export interface Typing {
  /** A user types for this many milliseconds, or stops. @throws ProtocolError `M_FORBIDDEN` for users who are not in the room */
  set(by: Requester, roomId: RoomId, timeoutMs: number | undefined): Promise<void>
  /** Who types, in the order in which they began, and the position at which that last changed; undefined when nobody has. */
  inRoom(roomNid: number): { readonly userIds: readonly UserId[]; readonly position: number } | undefined
  /** The same for a user of another server who is in the room. */
  setFor(room: Room, who: Viewer, timeoutMs: number): void
  /** A user has left a room, or has sent what they typed. */
  stop(roomNid: number, userNid: number): void
  close(): void
}

export interface TypingParts {
  readonly clock: Clock
  readonly access: RoomAccess
  /** The next position in the ephemeral stream. */
  nextPosition(): number
  /** Called when a user begins or stops typing in a room, with all who type there now. */
  changed(roomNid: number, userIds: () => Iterable<UserId>): void
  /** Called when a user of ours begins or stops typing. */
  toServers(room: Room, userId: UserId, isTyping: boolean): void
}

interface Typist {
  readonly userId: UserId
  readonly until: number
  readonly timer: NodeJS.Timeout
}

interface RoomTyping {
  readonly typists: Map<number, Typist>
  position: number
}

export function createTyping({ clock, access, nextPosition, changed, toServers }: TypingParts): Typing {
  const rooms = createCache<number, RoomTyping>(MAX_ROOMS_WITH_TYPING, {
    dispose: ({ typists }) => {
      for (const { timer } of typists.values()) clearTimeout(timer)
    },
  })

  function move(roomNid: number, room: RoomTyping): void {
    room.position = nextPosition()
    changed(roomNid, () => [...room.typists.values()].map(({ userId }) => userId))
  }

  function stop(roomNid: number, userNid: number): void {
    const room = rooms.get(roomNid)
    const typist = room?.typists.get(userNid)
    if (!room || !typist) return
    clearTimeout(typist.timer)
    room.typists.delete(userNid)
    move(roomNid, room)
  }

  /** A timer only wakes; the clock decides what has expired. */
  function expire(roomNid: number, userNid: number): void {
    const typist = rooms.peek(roomNid)?.typists.get(userNid)
    if (typist && typist.until <= clock.now()) stop(roomNid, userNid)
    else if (typist) start(roomNid, userNid, typist.userId, typist.until - clock.now())
  }

  function start(roomNid: number, userNid: number, userId: UserId, timeoutMs: number): void {
    const room = rooms.get(roomNid) ?? { typists: new Map<number, Typist>(), position: 0 }
    rooms.set(roomNid, room)
    const before = room.typists.get(userNid)
    if (!before && room.typists.size >= MAX_TYPING_PER_ROOM) return
    clearTimeout(before?.timer)
    const timer = setTimeout(() => expire(roomNid, userNid), timeoutMs).unref()
    room.typists.set(userNid, { userId, until: clock.now() + timeoutMs, timer })
    if (!before) move(roomNid, room)
  }

  function setFor(room: Room, { userId, userNid }: Viewer, timeoutMs: number): void {
    if (timeoutMs <= 0) stop(room.nid, userNid)
    else start(room.nid, userNid, userId, Math.min(timeoutMs, MAX_TYPING_MS))
  }

  return {
    async set(by, roomId, timeoutMs) {
      const room = await access.mustBeInRoom(by, roomId)
      setFor(room, by, timeoutMs ?? 0)
      toServers(room, by.userId, (timeoutMs ?? 0) > 0)
    },
    setFor,
    inRoom(roomNid) {
      const room = rooms.peek(roomNid)
      if (!room) return undefined
      const now = clock.now()
      const userIds = [...room.typists.values()].filter(({ until }) => until > now).map(({ userId }) => userId)
      return { userIds, position: room.position }
    },
    stop,
    close: () => rooms.clear(),
  }
}
