import { type ServerName, serverOf } from '../../core/ids.ts'
import type { Reader } from '../../store/db/db.ts'
import { getOwedEvents, getRoomEnds, type RoomEnd } from '../../store/federation/federation-catch-up.ts'
import { MAX_STICKY_SENT_AGAIN } from '../limits/sticky-events.ts'
import { MAX_BRANCHES_SENT, MAX_PDUS_IN_MEMORY, MAX_ROOM_ENDS_READ } from '../limits.ts'
import type { EventCache } from '../rooms/room/event-cache.ts'
import type { RoomRegistry } from '../rooms/room/registry.ts'
import type { StickyEvents } from '../rooms/write/sticky-events.ts'
import type { Missed, OutgoingPdu } from './destination.ts'
import type { ServerAccess } from './server-access.ts'

export interface CatchUpParts {
  readonly db: Reader
  readonly serverName: ServerName
  readonly registry: RoomRegistry
  readonly events: EventCache
  readonly sticky: Pick<StickyEvents, 'isEmpty' | 'newest'>
  readonly access: Pick<ServerAccess, 'readable'>
}

/**
 * Reads the events that a server missed, from an event on. If they are few, it reads all of them. Otherwise it reads only the newest of
 * each room, from which the server can fetch the rest: our last event, and the forward extremities, whoever sent them, because their
 * servers may be unreachable by now. Events that are sticky still are not left out. Rooms come in batches, those that were quiet for longest first, so that each comes once.
 */
export function createCatchUp({ db, serverName, registry, events, sticky, access }: CatchUpParts) {
  /** Our own events, then the forward extremities of their rooms that others sent. */
  async function pdusOf(server: ServerName, nids: readonly number[], ends: readonly RoomEnd[]): Promise<OutgoingPdu[]> {
    const pdus: OutgoingPdu[] = [...(await events.load(nids)).values()].sort((a, b) => a.nid - b.nid)
    for (const end of ends) {
      if (end.extremities.some((nid) => nid !== end.event_nid)) pdus.push(...(await branches(server, end)))
    }
    return pdus
  }

  /** A room's other forward extremities, as far as the server may see them. */
  async function branches(server: ServerName, end: RoomEnd): Promise<readonly OutgoingPdu[]> {
    const others = end.extremities.filter((nid) => nid !== end.event_nid)
    const newest = others.sort((a, b) => b - a).slice(0, MAX_BRANCHES_SENT)
    const found = [...(await events.load(newest)).values()]
    const sound = found.filter(({ standing, isInTimeline }) => standing === undefined && isInTimeline)
    return access.readable(server, await registry.getByNid(end.room_nid), sound)
  }

  /** Our own sticky events of rooms, from a number on, that are not the newest of their room. */
  async function stickyIn(ends: readonly RoomEnd[], from: number): Promise<readonly OutgoingPdu[]> {
    if (sticky.isEmpty) return []
    const newest = new Set(ends.map(({ event_nid }) => event_nid))
    const nids = ends.flatMap(({ room_nid }) => sticky.newest(room_nid, MAX_STICKY_SENT_AGAIN))
    const wanted = nids.filter((nid) => nid >= from && !newest.has(nid)).slice(-MAX_PDUS_IN_MEMORY)
    const found = [...(await events.load(wanted)).values()].sort((a, b) => a.nid - b.nid)
    return found.filter(({ sender }) => serverOf(sender) === serverName)
  }

  return async (server: ServerName, from: number): Promise<Missed> => {
    const owing = { from, ownServer: serverName, server }
    const ends = await getRoomEnds(db, owing, MAX_ROOM_ENDS_READ)
    if (ends.length === 0) return { pdus: [], next: from }
    const all = ends.length < MAX_ROOM_ENDS_READ ? await getOwedEvents(db, owing, MAX_PDUS_IN_MEMORY) : []
    const isLittle = all.length > 0 && all.length < MAX_PDUS_IN_MEMORY
    const nids = isLittle ? all : ends.map(({ event_nid }) => event_nid)
    const more = isLittle ? [] : await stickyIn(ends, from)
    return { pdus: [...more, ...(await pdusOf(server, nids, ends))], next: nids.at(-1)! + 1 }
  }
}
