import { type ServerName, serverOf, type UserId } from '../../../core/ids.ts'
import type { Membership } from '../../../store/rooms/rooms.ts'

export interface JoinedUser {
  readonly user_nid: number
  readonly user_id: UserId
}

interface Change {
  readonly userId: UserId
  readonly userNid: number
  readonly after: Membership
}

const SERVER_BYTES = 320
const USER_BYTES = 32

/** The servers that have users in a room. Read when first needed, then kept up to date. */
export class JoinedServers {
  #servers: Promise<Map<ServerName, Set<number>>> | undefined
  /** The result of that read. */
  #known: Map<ServerName, Set<number>> | undefined
  /** Memberships that were committed during the read. */
  #news: Change[] = []
  #users = 0

  /** Records a committed membership. */
  record(change: Change): void {
    if (this.#known) this.#set(this.#known, change)
    else if (this.#servers) this.#news.push(change)
  }

  /** Bytes in memory. */
  get bytes(): number {
    return this.#known ? this.#known.size * SERVER_BYTES + this.#users * USER_BYTES : 0
  }

  /** The numbers of joined users by server, including ours. @param read reads all joined users from the database */
  async of(read: () => Promise<readonly JoinedUser[]>): Promise<ReadonlyMap<ServerName, ReadonlySet<number>>> {
    if (this.#known) return this.#known
    if (!this.#servers) {
      this.#news = []
      this.#servers = read().then((users) => this.#take(users))
      this.#servers.catch(() => {
        this.#servers = undefined
      })
    }
    return this.#servers
  }

  #take(users: readonly JoinedUser[]): Map<ServerName, Set<number>> {
    const servers = new Map<ServerName, Set<number>>()
    for (const { user_id: userId, user_nid: userNid } of users) this.#set(servers, { userId, userNid, after: 'join' })
    // These come in commit order, so it does not matter which of them the read already saw.
    for (const change of this.#news) this.#set(servers, change)
    this.#news = []
    this.#known = servers
    return servers
  }

  #set(servers: Map<ServerName, Set<number>>, { userId, userNid, after }: Change): void {
    const server = serverOf(userId)
    const users = servers.get(server) ?? new Set()
    this.#users -= users.size
    if (after === 'join') users.add(userNid)
    else users.delete(userNid)
    this.#users += users.size
    if (users.size === 0) servers.delete(server)
    else servers.set(server, users)
  }
}
