import { setTimeout as pause } from 'node:timers/promises'
import type { Logger } from 'pino'
import { ProtocolError } from '../../core/errors.ts'
import { type EventId, isEventId, type ServerName, type UserId } from '../../core/ids.ts'
import { isObject, type JsonValue } from '../../core/json.ts'
import type { Peers } from '../../outbound/peers.ts'
import type { Database } from '../../store/db/db.ts'
import { getEventsById } from '../../store/events/events.ts'
import type { Clock } from '../clock.ts'
import {
  LOST_EVENTS_ASKED_MS,
  MAX_LOST_EVENT_SERVERS,
  MAX_LOST_EVENT_TIPS,
  MAX_LOST_EVENT_USERS,
} from '../limits/backups.ts'
import type { Receiver } from '../rooms/receive/receive.ts'
import { serversToTell } from '../rooms/room/destinations.ts'
import type { RoomRegistry } from '../rooms/room/registry.ts'
import type { Room } from '../rooms/room/room.ts'

/** Fetches what a restore took from a room: the events that other servers have of it, ours included. */
export interface LostEvents {
  /** Whether at least one other server in the room answered, or nobody is there to be asked. Never rejects. */
  fetch(roomNid: number): Promise<boolean>
}

/**
 * The newest events of a room, its forward extremities, are what a server names as `prev_events` in a template for a leave: for a user who
 * is in the room it gives one, whoever may join. Nothing is done with the template.
 */
export function createLostEvents(deps: {
  readonly serverName: ServerName
  readonly db: Database
  readonly clock: Clock
  readonly log: Logger
  readonly peers: Pick<Peers, 'make' | 'event' | 'query'>
  readonly registry: RoomRegistry
  readonly receiver: Receiver
}): LostEvents {
  const { serverName, db, clock, log, peers, registry, receiver } = deps

  async function tipsAt(server: ServerName, room: Room): Promise<EventId[]> {
    const users = [...room.localMembers.values()].slice(0, MAX_LOST_EVENT_USERS).map(({ userId }) => userId)
    for (const userId of users) {
      const tips = await extremitiesBy(server, room, userId)
      if (tips !== undefined) return tips
    }
    const where = `timestamp_to_event/${encodeURIComponent(room.id)}?ts=${clock.now()}&dir=b`
    const { event_id: newest } = await peers.query(server, where)
    return typeof newest === 'string' ? [newest as EventId] : []
  }

  /** Undefined if the server does not have this user in the room. */
  async function extremitiesBy(server: ServerName, room: Room, userId: UserId): Promise<EventId[] | undefined> {
    try {
      const { event } = await peers.make(server, 'leave', room.id, userId, [room.version.id])
      return isObject(event) ? idsIn(event.prev_events) : []
    } catch (error) {
      if (error instanceof ProtocolError && error.status < 500) return undefined
      throw error
    }
  }

  async function fetchFrom(server: ServerName, room: Room): Promise<void> {
    const tips = await tipsAt(server, room)
    const known = await getEventsById(db, tips)
    const placed = new Set(known.filter(({ standing }) => standing !== 'outlier').map(({ event_id }) => event_id))
    const unknown = tips.filter((id) => !placed.has(id))
    if (unknown.length === 0) return
    const found = await Promise.all(unknown.map((id) => peers.event(server, id).catch(() => [])))
    const results = await receiver.receive(server, room.id, found.flat())
    log.info({ room: room.id, server, newest: unknown.length, received: results.length }, 'lost events were fetched')
  }

  return {
    async fetch(roomNid) {
      try {
        const room = await registry.getByNid(roomNid)
        const servers = [...(await serversToTell(db, room))].filter((server) => server !== serverName)
        if (servers.length === 0 || room.localMembers.size === 0) return true
        const asked = servers.slice(0, MAX_LOST_EVENT_SERVERS).map((server) =>
          fetchFrom(server, room).then(
            () => true,
            (error: Error) => {
              log.info({ room: room.id, server, reason: error.message }, 'lost events could not be fetched')
              return false
            },
          ),
        )
        const answers = await Promise.race([Promise.all(asked), afterwards()])
        return answers?.includes(true) ?? false
      } catch (err) {
        log.warn({ err }, 'lost events of a room could not be fetched')
        return false
      }
    },
  }
}

const afterwards = (): Promise<undefined> => pause(LOST_EVENTS_ASKED_MS, undefined, { ref: false })

/** Ids of previous events; in rooms of versions 1 and 2 each comes with hashes. */
function idsIn(previous: JsonValue | undefined): EventId[] {
  if (!Array.isArray(previous)) return []
  const ids = previous.map((one) => (Array.isArray(one) ? one[0] : one))
  return ids.filter((id): id is EventId => typeof id === 'string' && isEventId(id)).slice(0, MAX_LOST_EVENT_TIPS)
}
