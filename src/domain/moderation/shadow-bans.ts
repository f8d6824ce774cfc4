import { createCache } from '../../core/cache.ts'
import type { EventId } from '../../core/ids.ts'
import { listShadowBanned } from '../../store/accounts/account-terms.ts'
import type { Reader } from '../../store/db/db.ts'
import { MAX_GHOST_BYTES_PER_USER, MAX_GHOSTS_PER_USER, MAX_USERS_WITH_GHOSTS } from '../limits/moderation.ts'

/** An event that only its sender sees. */
export interface Ghost {
  readonly eventId: EventId
  readonly roomNid: number
  /** In the ledger: syncs from before it show it. */
  readonly position: number
  /** Its form for clients, without its room. */
  readonly json: string
  /** The login and the transaction under which it was sent; undefined without one. */
  readonly transaction: string | undefined
}

/**
 * The users whose events nobody else gets to see, and the newest of these events. Both are in memory, and empty while nobody is banned so:
 * a look costs nothing. After a restart the events are gone.
 */
export interface ShadowBans {
  has(userNid: number): boolean
  changed(userNid: number, isBanned: boolean): void
  addGhost(userNid: number, ghost: Ghost): void
  /** What a transaction sent before. */
  ghostOf(userNid: number, transaction: string): Ghost | undefined
  /** The events of a user in a room after a ledger position, up to another one, oldest first. */
  ghosts(userNid: number, roomNid: number, after: number, upTo: number): readonly Ghost[]
  /** The rooms with such events. */
  ghostRooms(userNid: number, after: number, upTo: number): ReadonlySet<number>
}

const NONE: readonly Ghost[] = []
const NO_ROOMS: ReadonlySet<number> = new Set()

export async function openShadowBans({ db }: { readonly db: Reader }): Promise<ShadowBans> {
  const banned = new Set(await listShadowBanned(db))
  const kept = createCache<number, readonly Ghost[]>(MAX_USERS_WITH_GHOSTS)

  function within(userNid: number, after: number, upTo: number): readonly Ghost[] {
    if (banned.size === 0) return NONE
    return kept.peek(userNid)?.filter(({ position }) => position > after && position <= upTo) ?? NONE
  }

  return {
    has: (userNid) => banned.has(userNid),
    changed(userNid, isBanned) {
      if (isBanned) banned.add(userNid)
      else banned.delete(userNid)
      if (!isBanned) kept.delete(userNid)
    },
    addGhost(userNid, ghost) {
      let bytes = 0
      const newest = [...(kept.get(userNid) ?? []), ghost].slice(-MAX_GHOSTS_PER_USER).reverse()
      const fitting = newest.filter(({ json }) => {
        bytes += json.length
        return bytes <= MAX_GHOST_BYTES_PER_USER
      })
      kept.set(userNid, fitting.reverse())
    },
    ghostOf: (userNid, transaction) => kept.peek(userNid)?.find((ghost) => ghost.transaction === transaction),
    ghosts: (userNid, roomNid, after, upTo) =>
      within(userNid, after, upTo).filter((ghost) => ghost.roomNid === roomNid),
    ghostRooms(userNid, after, upTo) {
      const found = within(userNid, after, upTo)
      return found.length === 0 ? NO_ROOMS : new Set(found.map(({ roomNid }) => roomNid))
    },
  }
}
