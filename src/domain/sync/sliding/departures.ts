import { createCache } from '../../../core/cache.ts'
import { membershipOf } from '../../../core/event/content.ts'
import type { UserId } from '../../../core/ids.ts'
import type { EventCache } from '../../rooms/room/event-cache.ts'
import type { RoomEvent } from '../../rooms/room/room-event.ts'
import type { UserRoom } from '../user-rooms.ts'

/** How a user came out of a room. */
export interface Departure {
  /** Whether the user was ever joined before, as far as the room's events tell. */
  readonly wasIn: boolean
  /** Whether others decided that the user, who was in, is out. */
  readonly isKick: boolean
  /** The stream position of the event that ended the join, if others followed it, such as a ban. */
  readonly leftAt?: number
}

/** The departures of a user's leaves and bans, by the number of the event. */
export type Departures = (
  userId: UserId,
  gone: readonly UserRoom[],
) => ReadonlyMap<number, Departure> | Promise<ReadonlyMap<number, Departure>>

const MAX_EVENTS = 100_000
/** How many memberships are followed back in search of a join. */
const MAX_STEPS = 20

/** Looks at each event once. */
export function createDepartures(events: Pick<EventCache, 'load'>): Departures {
  const known = createCache<number, Departure>(MAX_EVENTS)

  async function departureOf(userId: UserId, leave: RoomEvent | undefined): Promise<Departure> {
    // State resolution took the join away, and there is no event that says so.
    if (membershipOf(leave) === 'join') return { wasIn: true, isKick: true }
    let at = leave
    for (let step = 0; at && step < MAX_STEPS; step++) {
      const before = at.replacesNid
      const replaced = before === undefined ? undefined : (await events.load([before])).get(before)
      if (membershipOf(replaced) === 'join') {
        const isKick = leave?.sender !== userId
        return at === leave ? { wasIn: true, isKick } : { wasIn: true, isKick, leftAt: at.streamPos }
      }
      at = replaced
    }
    return { wasIn: false, isKick: false }
  }

  async function learn(userId: UserId, nids: readonly number[]): Promise<void> {
    const leaves = await events.load(nids)
    await events.load([...leaves.values()].flatMap(({ replacesNid }) => replacesNid ?? []))
    await Promise.all(nids.map(async (nid) => known.set(nid, await departureOf(userId, leaves.get(nid)))))
  }

  return (userId, gone) => {
    const nids = gone.map(({ eventNid }) => eventNid)
    const unknown = nids.filter((nid) => !known.has(nid))
    const found = () => new Map(nids.flatMap((nid) => (known.has(nid) ? [[nid, known.get(nid)!]] : [])))
    return unknown.length === 0 ? found() : learn(userId, unknown).then(found)
  }
}
