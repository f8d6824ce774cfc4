import type { ByteBudget } from '../../core/byte-budget.ts'
import type { EventPosition } from './token.ts'

/** The members that a client was sent in a room. */
export interface SentMembers {
  readonly size: number
  /** The number of the member event that it was sent of a user. */
  nidOf(userId: string): number | undefined
  userIds(): Iterable<string>
}

/**
 * Which members each client was already sent in a room, so that lazy loading does not repeat them. What is forgotten only means that members
 * are sent again.
 */
export interface LazyMembers<Client extends number | string = number> {
  /**
   * The members that a client at a position was sent. Forgets those of answers after that position: the client did not get these answers,
   * or went back.
   */
  of(client: Client, roomNid: number, since: EventPosition | undefined): SentMembers
  /** The client begins with the room, and was sent none lazily. */
  forget(client: Client, roomNid: number): void
  /**
   * Records the members in an answer that leads from one position to another. Without the first position, the client starts over.
   *
   * @param shared in a first answer, other members, whom many clients are sent; they are kept as they are, and must not change
   */
  record(
    client: Client,
    roomNid: number,
    since: EventPosition | undefined,
    members: ReadonlyMap<string, number>,
    at: EventPosition,
    shared?: ReadonlyMap<string, number>,
  ): void
}

const MAX_MEMBERS_PER_ROOM = 2_000
/** Bytes of the entry for a client, of each room in it, and of each member there. */
const CLIENT_BYTES = 300
const ROOM_BYTES = 200
const MEMBER_BYTES = 136

/** A member event that a client was sent, and the position of the answer that held it. */
interface SentMember {
  readonly nid: number
  readonly at: EventPosition
}

const NOBODY: ReadonlyMap<string, number> = new Map()

class MembersOfRoom implements SentMembers {
  /** Those of the first answer that others were sent too, and the rest of them. */
  #shared: ReadonlyMap<string, number>
  #first: ReadonlyMap<string, number>
  readonly #firstAt: EventPosition
  /** Those of later answers. */
  #later: Map<string, SentMember> | undefined
  /** The position of the newest answer that held a member. */
  #newest: EventPosition

  constructor(first: ReadonlyMap<string, number>, at: EventPosition, shared = NOBODY) {
    this.#shared = shared
    this.#first = first
    this.#firstAt = at
    this.#newest = at
  }

  get size(): number {
    return this.#shared.size + this.#first.size + (this.#later?.size ?? 0)
  }

  get bytes(): number {
    return ROOM_BYTES + MEMBER_BYTES * this.size
  }

  nidOf(userId: string): number | undefined {
    return this.#later?.get(userId)?.nid ?? this.#first.get(userId) ?? this.#shared.get(userId)
  }

  userIds(): Iterable<string> {
    return new Set([...this.#shared.keys(), ...this.#first.keys(), ...(this.#later?.keys() ?? [])])
  }

  add(news: ReadonlyMap<string, number>, at: EventPosition): void {
    this.#later ??= new Map()
    for (const [userId, nid] of news) this.#later.set(userId, { nid, at })
    this.#newest = at
  }

  /** Forgets the members of answers after a position. */
  goBackTo(position: EventPosition): void {
    if (!isAfter(this.#newest, position)) return
    if (isAfter(this.#firstAt, position)) {
      this.#shared = NOBODY
      this.#first = NOBODY
    }
    for (const [userId, { at }] of this.#later ?? []) if (isAfter(at, position)) this.#later!.delete(userId)
    this.#newest = position
  }
}

const NO_MEMBERS: SentMembers = new MembersOfRoom(NOBODY, [])

/** The rooms of a client. */
class Sent {
  readonly #rooms = new Map<number, MembersOfRoom>()
  bytes = CLIENT_BYTES

  of(roomNid: number): MembersOfRoom | undefined {
    return this.#rooms.get(roomNid)
  }

  put(roomNid: number, members: MembersOfRoom): void {
    const { bytes } = members
    this.bytes += bytes - (this.#rooms.get(roomNid)?.bytes ?? 0)
    this.#rooms.set(roomNid, members)
  }

  /** Changes the members of a room. */
  change(members: MembersOfRoom, change: (members: MembersOfRoom) => void): void {
    const { bytes } = members
    change(members)
    this.bytes += members.bytes - bytes
  }

  delete(roomNid: number): void {
    this.bytes -= this.#rooms.get(roomNid)?.bytes ?? 0
    this.#rooms.delete(roomNid)
  }
}

/** Clients are logins, or connections of sliding sync. */
export function createLazyMembers<Client extends number | string = number>(budget: ByteBudget): LazyMembers<Client> {
  const clients = budget.part<Client, Sent>({ bytesOf: ({ bytes }) => bytes })

  function put(client: Client, roomNid: number, members: MembersOfRoom): void {
    const sent = clients.get(client) ?? new Sent()
    sent.put(roomNid, members)
    clients.set(client, sent)
  }

  return {
    of(client, roomNid, since) {
      const sent = since && clients.get(client)
      const members = sent?.of(roomNid)
      if (!members) return NO_MEMBERS
      sent!.change(members, () => members.goBackTo(since!))
      return members
    },
    forget: (client, roomNid) => clients.get(client)?.delete(roomNid),
    record(client, roomNid, since, news, at, shared) {
      if (news.size === 0 && since) return
      const sent = since && clients.get(client)
      const members = sent?.of(roomNid)
      if (members === undefined || members.size >= MAX_MEMBERS_PER_ROOM) {
        put(client, roomNid, new MembersOfRoom(news, at, shared))
        return
      }
      sent!.change(members, () => members.add(news, at))
      clients.grown(client, sent!)
    },
  }
}

function isAfter(at: EventPosition, since: EventPosition): boolean {
  return at.some((nid, writer) => nid > (since[writer] ?? 0))
}
