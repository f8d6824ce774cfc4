import type { ByteBudget } from '../../core/byte-budget.ts'
import type { EventPosition } from './token.ts'

/** A member event that a client was sent. */
export interface SentMember {
  /** The number of the event. */
  readonly nid: number
  /** The position of the answer that held it. */
  readonly at: EventPosition
}

/**
 * Which members each client was already sent in a room, so that lazy loading does not repeat them. An entry that is forgotten only means
 * that the member is sent again.
 */
export interface LazyMembers<Client extends number | string = number> {
  /**
   * The members that a client at a position was sent. Forgets those of answers after that position: the client did not get these answers,
   * or went back.
   */
  of(client: Client, roomNid: number, since: EventPosition | undefined): ReadonlyMap<string, SentMember>
  /** The client begins with the room, and was sent none lazily. */
  forget(client: Client, roomNid: number): void
  /** Records the members in an answer that leads from one position to another. Without the first position, the client starts over. */
  record(
    client: Client,
    roomNid: number,
    since: EventPosition | undefined,
    members: ReadonlyMap<string, number>,
    at: EventPosition,
  ): void
}

const MAX_MEMBERS_PER_ROOM = 2_000
/** Bytes of the entry for a client in a room, and of each member in it. */
const CLIENT_BYTES = 340
const MEMBER_BYTES = 136

interface SentMembers {
  readonly members: Map<string, SentMember>
  /** The position of the newest answer that held a member. */
  newest: EventPosition
}

/** Clients are logins, or connections of sliding sync. */
export function createLazyMembers<Client extends number | string = number>(budget: ByteBudget): LazyMembers<Client> {
  const clients = budget.part<string, SentMembers>({
    bytesOf: ({ members }) => CLIENT_BYTES + members.size * MEMBER_BYTES,
  })

  return {
    of(client, roomNid, since) {
      const sent = clients.get(`${client} ${roomNid}`)
      if (!since || !sent) return NOBODY
      if (isAfter(sent.newest, since)) {
        for (const [userId, { at }] of sent.members) if (isAfter(at, since)) sent.members.delete(userId)
        sent.newest = since
      }
      return sent.members
    },
    forget: (client, roomNid) => clients.delete(`${client} ${roomNid}`),
    record(client, roomNid, since, news, at) {
      if (news.size === 0 && since) return
      const key = `${client} ${roomNid}`
      const sent = since && clients.get(key)
      const isKept = sent && sent.members.size < MAX_MEMBERS_PER_ROOM
      const members = isKept ? sent.members : new Map<string, SentMember>()
      for (const [userId, nid] of news) members.set(userId, { nid, at })
      clients.set(key, { members, newest: at })
    },
  }
}

const NOBODY: ReadonlyMap<string, SentMember> = new Map()

function isAfter(at: EventPosition, since: EventPosition): boolean {
  return at.some((nid, writer) => nid > (since[writer] ?? 0))
}
