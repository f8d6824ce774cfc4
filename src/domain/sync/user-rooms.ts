import type { ByteBudget } from '../../core/byte-budget.ts'
import type { Reader } from '../../store/db/db.ts'
import { getMemberships, type Membership } from '../../store/rooms/rooms.ts'

export interface UserRoom {
  readonly membership: Membership
  /** The membership event. */
  readonly eventNid: number
  /** The stream position at which the membership changed. */
  readonly changedAt: number
  readonly forgotten: boolean
}

/** The rooms of a user, by number. */
export interface RoomsOfUser extends ReadonlyMap<number, UserRoom> {
  /** Differs after each change. */
  readonly revision: number
  /** The newest position at which any of them changed, or later. */
  readonly changedAt: number
  /** Those that the user is in, as they are now: this map does not change any more. */
  readonly joined: ReadonlyMap<number, UserRoom>
}

/** The rooms of active users: read once, then kept up to date by commits. */
export interface UserRooms {
  of(userNid: number): RoomsOfUser | Promise<RoomsOfUser>
  /** Those that are in memory. */
  peek(userNid: number): RoomsOfUser | undefined
  changed(userNid: number, roomNid: number, room: UserRoom): void
  forgotten(userNid: number, roomNid: number): void
  /** A room was removed for good. */
  removed(roomNid: number): void
  /** Commits were missed: all users' rooms are loaded again. */
  forgetAll(): void
}

class ChangingRooms extends Map<number, UserRoom> implements RoomsOfUser {
  revision = 0
  changedAt = 0
  /** Made by the first who asks after a change. */
  #joined: ReadonlyMap<number, UserRoom> | undefined

  override set(roomNid: number, room: UserRoom): this {
    this.revision += 1
    this.changedAt = Math.max(this.changedAt, room.changedAt)
    this.#joined = undefined
    return super.set(roomNid, room)
  }

  override delete(roomNid: number): boolean {
    this.revision += 1
    this.#joined = undefined
    return super.delete(roomNid)
  }

  get joined(): ReadonlyMap<number, UserRoom> {
    if (this.#joined === undefined) {
      const joined = new Map<number, UserRoom>()
      for (const [roomNid, room] of this) if (room.membership === 'join') joined.set(roomNid, room)
      this.#joined = joined
    }
    return this.#joined
  }
}

/** Bytes of a user's rooms, and of one of them, with its place among those that the user is in. */
const ROOMS_BYTES = 300
const ROOM_BYTES = 144

export function createUserRooms({ db, budget }: { db: Reader; budget: ByteBudget }): UserRooms {
  const users = budget.part<number, ChangingRooms>({ bytesOf: ({ size }) => ROOMS_BYTES + size * ROOM_BYTES })
  const loading = new Map<number, Promise<ChangingRooms>>()
  /** Numbers of rooms that were removed. No number is used twice. */
  const gone = new Set<number>()
  /** Changes that were committed while a user's rooms were being read. */
  const meanwhile = new Map<number, [roomNid: number, room: UserRoom][]>()

  function put(rooms: ChangingRooms, roomNid: number, room: UserRoom): void {
    if (gone.has(roomNid)) return
    const known = rooms.get(roomNid)
    if (!known || known.changedAt <= room.changedAt) rooms.set(roomNid, room)
  }

  async function load(userNid: number): Promise<ChangingRooms> {
    meanwhile.set(userNid, [])
    try {
      const rooms = new ChangingRooms()
      for (const row of await getMemberships(db, userNid)) {
        const { membership, event_nid: eventNid, changed_at: changedAt, forgotten } = row
        put(rooms, row.room_nid, { membership, eventNid, changedAt, forgotten })
      }
      for (const [roomNid, room] of meanwhile.get(userNid)!) put(rooms, roomNid, room)
      users.set(userNid, rooms)
      return rooms
    } finally {
      meanwhile.delete(userNid)
      loading.delete(userNid)
    }
  }

  return {
    of(userNid) {
      const known = users.get(userNid)
      if (known) return known
      let promise = loading.get(userNid)
      if (!promise) {
        promise = load(userNid)
        loading.set(userNid, promise)
      }
      return promise
    },
    peek: (userNid) => users.get(userNid),
    changed(userNid, roomNid, room) {
      const rooms = users.get(userNid)
      if (rooms) put(rooms, roomNid, room)
      else meanwhile.get(userNid)?.push([roomNid, room])
    },
    removed(roomNid) {
      gone.add(roomNid)
      for (const rooms of users.values()) rooms.delete(roomNid)
    },
    forgetAll: () => users.clear(),
    forgotten(userNid, roomNid) {
      const rooms = users.get(userNid)
      const room = rooms?.get(roomNid)
      if (room?.membership === 'leave' || room?.membership === 'ban') rooms?.set(roomNid, { ...room, forgotten: true })
    },
  }
}
