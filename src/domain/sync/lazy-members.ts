import { createCache } from '../../core/cache.ts'

/**
 * Which members each client was already told about in a room, so that lazy loading does not repeat them.
 * Forgetting one only means telling it again.
 */
export interface LazyMembers {
  /** The members a client has been told about, and by which event; the caller adds to them. */
  of(tokenNid: number, roomNid: number): Map<string, number>
  /** The client starts over. */
  reset(tokenNid: number, roomNid: number): void
}

const MAX_ROOMS = 20_000
const MAX_MEMBERS_PER_ROOM = 2_000

export function createLazyMembers(): LazyMembers {
  const told = createCache<string, Map<string, number>>(MAX_ROOMS)

  return {
    of(tokenNid, roomNid) {
      const key = `${tokenNid} ${roomNid}`
      const known = told.get(key)
      if (known && known.size < MAX_MEMBERS_PER_ROOM) return known
      const fresh = new Map<string, number>()
      told.set(key, fresh)
      return fresh
    },
    reset: (tokenNid, roomNid) => void told.delete(`${tokenNid} ${roomNid}`),
  }
}
