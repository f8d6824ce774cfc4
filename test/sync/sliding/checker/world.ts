import type { Json } from '../../../support/api.ts'

export interface Standing {
  readonly membership: 'join' | 'invite' | 'leave' | 'ban'
  /** When it became so, by the world's clock. */
  readonly at: number
  /** What it was before. */
  readonly before: Standing['membership'] | undefined
  /** Whether the user was ever in. */
  readonly wasIn: boolean
  /** Whether the user did it. */
  readonly isOwn: boolean
  readonly isForgotten: boolean
}

export interface WorldRoom {
  readonly id: string
  readonly admin: string
  readonly isPublic: boolean
  /** Whether some of its history is, or was, hidden from some. */
  hidesHistory: boolean
  /** Whether people who left may see, or once could, what comes after. */
  isWorldReadable: boolean
  /** When its newest event came. */
  lastAt: number
  readonly standings: Map<string, Standing>
  readonly typing: Set<string>
  /** Whether the server may have forgotten who types. */
  isTypingUnsure: boolean
  /** Events that can be redacted, by sender. */
  readonly messages: { readonly id: string; readonly sender: string }[]
  /** The event by user and kind of receipt. */
  readonly receipts: Map<string, string>
}

/** What happened, as the test did it: nothing here is read from the server. */
export class World {
  readonly rooms = new Map<string, WorldRoom>()
  /** By user, room ('' for none) and type, with spaces between. */
  readonly accountData = new Map<string, Json>()
  /** By device: the numbers of the messages to it. */
  readonly toDevice = new Map<string, number[]>()
  #clock = 0

  tick(): number {
    this.#clock += 1
    return this.#clock
  }

  addRoom(id: string, admin: string, isPublic: boolean): WorldRoom {
    const room: WorldRoom = {
      ...{ id, admin, isPublic, lastAt: this.tick(), standings: new Map(), typing: new Set(), isTypingUnsure: false },
      ...{ hidesHistory: false, isWorldReadable: false },
      ...{ messages: [], receipts: new Map() },
    }
    this.rooms.set(id, room)
    this.move(room, admin, 'join', true)
    return room
  }

  /** All of a room is gone from the server, with what users kept about it. */
  removeRoom(id: string): void {
    this.rooms.delete(id)
    for (const name of this.accountData.keys()) if (name.split(' ')[1] === id) this.accountData.delete(name)
  }

  /** An event came. */
  touch(room: WorldRoom): void {
    room.lastAt = this.tick()
  }

  move(room: WorldRoom, userId: string, membership: Standing['membership'], isOwn: boolean): void {
    this.touch(room)
    const before = room.standings.get(userId)
    const wasIn = membership === 'join' || before?.wasIn === true
    const standing = { membership, at: room.lastAt, before: before?.membership, wasIn, isOwn, isForgotten: false }
    room.standings.set(userId, standing)
    if (membership !== 'join') room.typing.delete(userId)
  }

  forget(room: WorldRoom, userId: string): void {
    room.standings.set(userId, { ...room.standings.get(userId)!, isForgotten: true })
  }

  /** Typing lives in the server's memory: until somebody begins again, clients may show who typed before. */
  restart(): void {
    for (const room of this.rooms.values()) {
      room.typing.clear()
      room.isTypingUnsure = true
    }
  }

  directRooms(userId: string): Set<string> {
    const content: Json = this.accountData.get(`${userId}  m.direct`) ?? {}
    return new Set(Object.values<string[]>(content).flat())
  }

  /** Rooms in the order of lists: the newest activity first. `sent` are those that the connection was sent before. */
  listed(userId: string, sent: ReadonlySet<string>): WorldRoom[] {
    const places: { room: WorldRoom; at: number }[] = []
    for (const room of this.rooms.values()) {
      const standing = room.standings.get(userId)
      if (standing === undefined || standing.isForgotten) continue
      const { membership, at, wasIn, isOwn } = standing
      if (membership === 'join') places.push({ room, at: room.lastAt })
      else if (membership === 'invite' || sent.has(room.id) || (wasIn && !isOwn)) places.push({ room, at })
    }
    return places.sort((a, b) => b.at - a.at).map(({ room }) => room)
  }
}
