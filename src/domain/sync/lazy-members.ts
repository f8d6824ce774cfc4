import type { ByteBudget } from '../../core/byte-budget.ts'
import type { EventPosition } from './token.ts'

/** How a client was told of a member. */
export interface ToldMember {
  /** By which event. */
  readonly nid: number
  /** In the answer that led to this position. */
  readonly at: EventPosition
}

/**
 * Which members each client was already told about in a room, so that lazy loading does not repeat them.
 * Forgetting one only means telling it again.
 */
export interface LazyMembers {
  /**
   * The members that a client at a position has been told about. What was told in answers after that position is forgotten: the client
   * did not get them, or went back.
   */
  of(tokenNid: number, roomNid: number, since: EventPosition | undefined): ReadonlyMap<string, ToldMember>
  /** A client is told of more, in the answer that leads from one position to another. Without the first it starts over. */
  tell(
    tokenNid: number,
    roomNid: number,
    since: EventPosition | undefined,
    members: ReadonlyMap<string, number>,
    at: EventPosition,
  ): void
}

const MAX_MEMBERS_PER_ROOM = 2_000
/** Bytes of what one client knows of a room, and of each member in it. */
const TOLD_BYTES = 340
const MEMBER_BYTES = 136

interface Told {
  readonly members: Map<string, ToldMember>
  /** The newest answer that told of one. */
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
