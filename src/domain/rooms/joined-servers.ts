import { type ServerName, serverOf, type UserId } from '../../core/ids.ts'
import type { Membership } from '../../store/rooms.ts'

export interface JoinedUser {
  readonly user_nid: number
  readonly user_id: UserId
}

interface Change {
  readonly userId: UserId
  readonly userNid: number
  readonly after: Membership
}

/** The servers that have users in a room: read when another server first has to do with it, then kept up to date. */
export class JoinedServers {
  #servers: Promise<Map<ServerName, Set<number>>> | undefined
  /** Memberships that were committed since the reading began, and that nobody has asked after yet. */
  #news: Change[] = []

  /** Notes a membership that was committed. */
  record(change: Change): void {
    if (this.#servers) this.#news.push(change)
  }

  /** The numbers of joined users by server, ours among them. @param read everybody who is joined by the database */
  async of(read: () => Promise<readonly JoinedUser[]>): Promise<ReadonlyMap<ServerName, ReadonlySet<number>>> {
    if (!this.#servers) {
      this.#news = []
      this.#servers = read().then(byServer)
      this.#servers.catch(() => {
        this.#servers = undefined
      })
    }
    const servers = await this.#servers
    // In the order of commits, so that it does not matter which of them the reading had seen.
    for (const { userId, userNid, after } of this.#news) set(servers, userId, userNid, after === 'join')
    this.#news = []
    return servers
  }
}

function byServer(users: readonly JoinedUser[]): Map<ServerName, Set<number>> {
  const servers = new Map<ServerName, Set<number>>()
  for (const { user_id, user_nid } of users) set(servers, user_id, user_nid, true)
  return servers
}

function set(servers: Map<ServerName, Set<number>>, userId: UserId, userNid: number, isJoined: boolean): void {
  const server = serverOf(userId)
  const users = servers.get(server)
  if (isJoined && users) users.add(userNid)
  else if (isJoined) servers.set(server, new Set([userNid]))
  else if (users?.delete(userNid) && users.size === 0) servers.delete(server)
}
