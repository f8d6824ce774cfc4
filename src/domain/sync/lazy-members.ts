import type { ByteBudget } from '../../core/byte-budget.ts'
import type { EventPosition } from './token.ts'

/** A member event that a client was sent. */
export interface ToldMember {
  /** The number of the event. */
  readonly nid: number
  /** The position of the answer that held it. */
  readonly at: EventPosition
}

/**
 * Which members each client was already sent in a room, so that lazy loading does not repeat them. An entry that is forgotten only means
 * that the member is sent again.
 */
export interface LazyMembers {
  /**
   * The members that a client at a position was sent. Forgets those of answers after that position: the client did not get these answers,
   * or went back.
   */
  of(tokenNid: number, roomNid: number, since: EventPosition | undefined): ReadonlyMap<string, ToldMember>
  /** Records the members in an answer that leads from one position to another. Without the first position, the client starts over. */
  tell(
    tokenNid: number,
    roomNid: number,
    since: EventPosition | undefined,
    members: ReadonlyMap<string, number>,
    at: EventPosition,
  ): void
}

const MAX_MEMBERS_PER_ROOM = 2_000
/** Bytes of the entry for a client in a room, and of each member in it. */
const TOLD_BYTES = 340
const MEMBER_BYTES = 136

interface Told {
  readonly members: Map<string, ToldMember>
  /** The position of the newest answer that held a member. */
  newest: EventPosition
}

export function createLazyMembers(budget: ByteBudget): LazyMembers {
  const clients = budget.part<string, Told>({ bytesOf: ({ members }) => TOLD_BYTES + members.size * MEMBER_BYTES })

  return {
    of(tokenNid, roomNid, since) {
      const told = clients.get(`${tokenNid} ${roomNid}`)
      if (!since || !told) return NOBODY
      if (isAfter(told.newest, since)) {
        for (const [userId, { at }] of told.members) if (isAfter(at, since)) told.members.delete(userId)
        told.newest = since
      }
      return told.members
    },
    tell(tokenNid, roomNid, since, news, at) {
      if (news.size === 0 && since) return
      const key = `${tokenNid} ${roomNid}`
      const told = since && clients.get(key)
      const isKept = told && told.members.size < MAX_MEMBERS_PER_ROOM
      const members = isKept ? told.members : new Map<string, ToldMember>()
      for (const [userId, nid] of news) members.set(userId, { nid, at })
      clients.set(key, { members, newest: at })
    },
  }
}

const NOBODY: ReadonlyMap<string, ToldMember> = new Map()

function isAfter(at: EventPosition, since: EventPosition): boolean {
  return at.some((nid, writer) => nid > (since[writer] ?? 0))
}
