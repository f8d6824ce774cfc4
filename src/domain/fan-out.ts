import { setMaxListeners } from 'node:events'
import { createCache } from '../core/cache.ts'
import { ProtocolError } from '../core/errors.ts'
import { type ServerName, serverOf, type UserId } from '../core/ids.ts'
import type { Reader } from '../store/db/db.ts'
import { whoSharesRoom } from '../store/rooms/rooms.ts'
import type { Requester } from './accounts/requester.ts'
import { AskingPlaces } from './asking-places.ts'
import type { BoundMetrics } from './bound-metrics.ts'
import type { Clock } from './clock.ts'
import { FAN_OUT_CAPS, MAX_FAN_OUT_AT_ONCE, MAX_FAN_OUT_REMEMBERED, MAX_FAN_OUT_USERS_REMEMBERED } from './limits.ts'
import type { RateLimitOverrides } from './rate-limit-overrides.ts'
import type { PartialStateRooms } from './rooms/room/partial-state-rooms.ts'
import type { RoomRegistry } from './rooms/room/registry.ts'
import { createSpending } from './spending.ts'

type By = Pick<Requester, 'userNid' | 'isGuest' | 'isUnlimited'>

/** Limits the requests to other servers that one request of a user causes. */
export interface FanOut {
  /**
   * Which servers of these users a request may ask: those that share a room with the requester, and a few others. Each server counts
   * against the requester's allowance.
   */
  admit(by: By, userIds: readonly UserId[]): Promise<ReadonlySet<ServerName>>
  /**
   * The same for a request that tells all of the servers something, or none.
   *
   * @throws ProtocolError `M_TOO_LARGE`, `M_LIMIT_EXCEEDED`
   */
  require(by: By, userIds: readonly UserId[]): Promise<void>
  /** Asks servers, so many at a time. A server that fails, or gets no turn in time, is not in the result. */
  ask<T>(
    by: By,
    servers: Iterable<ServerName>,
    timeoutMs: number,
    ask: (server: ServerName, timeoutMs: number) => Promise<T>,
  ): Promise<Map<ServerName, T>>
  /** How many requests to servers are running. */
  asking(): number
}

/** A server that a user has reached does not count again for this long. */
const REACHED_MS = 60 * 60 * 1000

type Kind = 'neighbours' | 'strangers'
const KINDS: readonly Kind[] = ['neighbours', 'strangers']

export function createFanOut(parts: {
  readonly base: {
    readonly config: { readonly server_name: ServerName }
    readonly db: Reader
    readonly clock: Clock
    readonly metrics: { readonly bounds: BoundMetrics }
    readonly rateLimitOverrides: Pick<RateLimitOverrides, 'get'>
  }
  readonly roomBase: {
    readonly registry: Pick<RoomRegistry, 'peek'>
    readonly partialStateRooms: Pick<PartialStateRooms, 'all'>
  }
}): FanOut {
  const { config, db, clock, metrics, rateLimitOverrides: overrides } = parts.base
  const { registry, partialStateRooms } = parts.roomBase
  const { bounds } = metrics
  const serverName = config.server_name
  const places = new AskingPlaces(MAX_FAN_OUT_AT_ONCE)
  const spending = {
    neighbours: createSpending({ clock, max: MAX_FAN_OUT_USERS_REMEMBERED }),
    strangers: createSpending({ clock, max: MAX_FAN_OUT_USERS_REMEMBERED }),
  }

  const capsOf = ({ isGuest }: By) => (isGuest ? FAN_OUT_CAPS.guest : FAN_OUT_CAPS.user)
  const isUnlimited = (by: By) => by.isUnlimited === true || overrides.get(by.userNid)?.per_second === 0

  /** The allowance bounds the number of different servers. So a server that the user reached lately is not counted again. */
  const reached = createCache<string, number>(MAX_FAN_OUT_REMEMBERED)
  const isCounted = (by: By, kind: Kind, server: ServerName) =>
    kind === 'neighbours' || (reached.get(`${by.userNid} ${server}`) ?? 0) < clock.now() - REACHED_MS

  /** Takes from the allowance for each server that counts, as long as it lasts, and returns the servers that may be reached. */
  function take(by: By, kind: Kind, servers: readonly ServerName[]): readonly ServerName[] {
    if (isUnlimited(by)) return servers
    const [counted, free] = [true, false].map((is) => servers.filter((server) => isCounted(by, kind, server) === is))
    const given = counted!.slice(0, spending[kind].take(by.userNid, counted!.length, capsOf(by)[kind]))
    if (kind === 'strangers') for (const server of given) reached.set(`${by.userNid} ${server}`, clock.now())
    return [...free!, ...given]
  }

  /** The servers of partial-state rooms: nobody knows yet who is in them. */
  function serversMeanwhile({ userNid }: By): Set<ServerName> {
    const mine = partialStateRooms.all().filter(({ roomNid }) => registry.peek(roomNid)?.localMembers.has(userNid))
    return new Set(mine.flatMap(({ serversMeanwhile: servers }) => [...servers]))
  }

  /** The servers, sorted by their relation to the requester. The requester's own server is left out. */
  async function sorted(by: By, userIds: readonly UserId[]): Promise<Readonly<Record<Kind, readonly ServerName[]>>> {
    const others = userIds.filter((userId) => serverOf(userId) !== serverName)
    if (others.length === 0) return { neighbours: [], strangers: [] }
    const servers = [...new Set(others.map((userId) => serverOf(userId)))]
    const isNear = new Set((await whoSharesRoom(db, by.userNid, others)).map((userId) => serverOf(userId)))
    if (isNear.size < servers.length) for (const server of serversMeanwhile(by)) isNear.add(server)
    return {
      neighbours: servers.filter((server) => isNear.has(server)),
      strangers: servers.filter((server) => !isNear.has(server)),
    }
  }

  return {
    async admit(by, userIds) {
      const servers = await sorted(by, userIds)
      const admitted = KINDS.flatMap((kind) => take(by, kind, servers[kind].slice(0, capsOf(by)[kind].asked)))
      const refused = servers.neighbours.length + servers.strangers.length - admitted.length
      if (refused > 0) bounds.reached('fan-out', refused)
      return new Set(admitted)
    },
    async require(by, userIds) {
      const servers = await sorted(by, userIds)
      const refused = (error: ProtocolError) => {
        bounds.reached('fan-out', servers.neighbours.length + servers.strangers.length)
        return error
      }
      for (const kind of KINDS) {
        const { sent } = capsOf(by)[kind]
        if (servers[kind].length > sent) throw refused(tooMany(kind, sent))
      }
      if (isUnlimited(by)) return
      for (const kind of KINDS) {
        const counted = servers[kind].filter((server) => isCounted(by, kind, server))
        const retry_after_ms = spending[kind].waitMs(by.userNid, counted.length, capsOf(by)[kind])
        if (retry_after_ms > 0) throw refused(notNow(retry_after_ms))
      }
      for (const kind of KINDS) take(by, kind, servers[kind])
    },
    async ask(by, servers, timeoutMs, ask) {
      const { atOnce } = capsOf(by)
      const end = clock.now() + timeoutMs
      const signal = AbortSignal.timeout(timeoutMs)
      setMaxListeners(atOnce, signal)
      const answers = new Map<ServerName, Awaited<ReturnType<typeof ask>>>()
      const left = new Set(servers)
      const oneAfterAnother = async (): Promise<void> => {
        while (left.size > 0 && (await places.enter(by.userNid, atOnce, signal))) {
          const [server] = left
          try {
            if (server === undefined) continue
            left.delete(server)
            answers.set(server, await ask(server, Math.max(1, end - clock.now())))
          } catch {
            // A server that had no turn in time counts as not asked.
          } finally {
            places.leave(by.userNid)
          }
        }
      }
      await Promise.all(Array.from({ length: Math.min(left.size, atOnce) }, oneAfterAnother))
      return answers
    },
    asking: () => places.taken,
  }
}

function tooMany(kind: Kind, most: number): ProtocolError {
  const which = kind === 'strangers' ? 'servers that share no room with you' : 'servers'
  return new ProtocolError('M_TOO_LARGE', `One call may reach ${most} ${which}. Spread it over several.`)
}

function notNow(retry_after_ms: number): ProtocolError {
  const message = 'You have reached many other servers. Wait a little before you reach more.'
  return new ProtocolError('M_LIMIT_EXCEEDED', message, { extra: { retry_after_ms } })
}
