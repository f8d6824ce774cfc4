import { ProtocolError } from '../../core/errors.ts'
import { membershipOf } from '../../core/event/content.ts'
import { type EventId, isUserId, type RoomId, type ServerName, serverOf } from '../../core/ids.ts'
import type { Database } from '../../store/db/db.ts'
import { nearestEvents } from '../../store/events/events.ts'
import type { StateIds } from '../rooms/receive/federation-queries.ts'
import { isKickOrBan } from '../rooms/remote/partial-state-kicks.ts'
import type { Resident } from '../rooms/remote/resident.ts'
import type { Between } from '../rooms/remote/resident-events.ts'
import type { StateTexts } from '../rooms/remote/resident-state.ts'
import type { EventCache } from '../rooms/room/event-cache.ts'
import type { RoomRegistry } from '../rooms/room/registry.ts'
import { wholeRoom } from '../rooms/room/whole-room.ts'
import { type ServerAccess, shutOut } from './server-access.ts'

/**
 * Answers other servers about the rooms that they share with us. Events are canonical JSON.
 *
 * @throws ProtocolError each: `M_FORBIDDEN` for servers that are not in the room, whether the room exists or not; `M_NOT_FOUND` for what
 *   does not exist or is not for them
 */
export interface RoomAnswers {
  /** `GET event/{eventId}`. */
  event(asking: ServerName, eventId: EventId): Promise<string>
  /** `GET state/{roomId}`: the state before an event. */
  state(asking: ServerName, roomId: RoomId, eventId: EventId): Promise<StateTexts>
  /** `GET state_ids/{roomId}`. */
  stateIds(asking: ServerName, roomId: RoomId, eventId: EventId): Promise<StateIds>
  /**
   * `GET event_auth/{roomId}/{eventId}`: the auth chain of an event. The server of a user who was kicked or banned may request it for
   * that event, because it may not know the sender yet.
   */
  authChain(asking: ServerName, roomId: RoomId, eventId: EventId): Promise<readonly string[]>
  /** `GET backfill/{roomId}`: some events and those before them, newest first. */
  backfill(asking: ServerName, roomId: RoomId, eventIds: readonly EventId[], limit: number): Promise<string[]>
  /** `GET timestamp_to_event/{roomId}`: of the events nearest to a time, the first that the server may read. */
  eventAtTime(
    asking: ServerName,
    roomId: RoomId,
    ts: number,
    direction: 'b' | 'f',
  ): Promise<{ event_id: EventId; origin_server_ts: number }>
  /** `POST get_missing_events/{roomId}`. */
  missingEvents(asking: ServerName, roomId: RoomId, between: Between): Promise<string[]>
}

/** Events near a time that are examined for one that the asking server may read. */
const LOOKED_AT = 100

export function createRoomAnswers(parts: {
  readonly db: Database
  readonly registry: RoomRegistry
  readonly events: EventCache
  readonly resident: Resident
  readonly access: ServerAccess
}): RoomAnswers {
  const { registry, events, resident, access } = parts
  const notFound = () => new ProtocolError('M_NOT_FOUND', 'There is no such event here for your server to see.')

  async function found<T>(answer: Promise<T | undefined>): Promise<T> {
    const value = await answer
    if (value === undefined) throw notFound()
    return value
  }

  async function wasPutOutBy(asking: ServerName, roomId: RoomId, eventId: EventId): Promise<boolean> {
    const room = await registry.get(roomId)
    if (!room || room.localMembers.size === 0 || !(await access.isAllowed(asking, room))) return false
    const event = await events.getById(eventId)
    if (event?.roomNid !== room.nid || event.standing !== undefined || !isKickOrBan(event.pdu)) return false
    const target = event.pdu.state_key
    if (!isUserId(target) || serverOf(target) !== asking || event.replacesNid === undefined) return false
    // A user whose knock was refused or whose invitation was taken back never saw the room.
    return membershipOf((await events.load([event.replacesNid])).get(event.replacesNid)) === 'join'
  }

  return {
    async event(asking, eventId) {
      const event = await events.getById(eventId)
      const known = event && (await registry.getByNid(event.roomNid))
      if (!known || !(await access.isIn(asking, known))) {
        const isShutOut =
          known && (await access.serversOf(known)).has(asking) && !(await access.isAllowed(asking, known))
        throw isShutOut ? shutOut(asking) : notFound()
      }
      const room = known.partialState?.lacksMembers ? await access.mustBeIn(asking, known.id) : known
      const wanted = await resident.events(room.id, [eventId])
      return found(access.shownTo(asking, room, wanted).then(([text]) => text))
    },
    async state(asking, roomId, eventId) {
      await wholeRoom(registry, await access.mustBeIn(asking, roomId))
      return found(resident.stateAt(roomId, eventId))
    },
    async stateIds(asking, roomId, eventId) {
      await wholeRoom(registry, await access.mustBeIn(asking, roomId))
      return found(resident.stateIds(roomId, eventId))
    },
    async authChain(asking, roomId, eventId) {
      if (!(await wasPutOutBy(asking, roomId, eventId))) await access.mustBeIn(asking, roomId)
      return found(resident.authChain(roomId, eventId))
    },
    async backfill(asking, roomId, eventIds, limit) {
      const room = await access.mustBeIn(asking, roomId)
      return access.shownTo(asking, room, await resident.backfill(roomId, eventIds, limit))
    },
    async eventAtTime(asking, roomId, ts, direction) {
      const room = await access.mustBeIn(asking, roomId)
      const rows = await nearestEvents({ query: parts.db.scan }, room.nid, ts, direction, LOOKED_AT)
      const near = rows.map((row) => events.adopt(row))
      const [event] = await access.readable(asking, room, near)
      if (!event) throw notFound()
      return { event_id: event.id, origin_server_ts: event.ts }
    },
    async missingEvents(asking, roomId, between) {
      const room = await access.mustBeIn(asking, roomId)
      return access.shownTo(asking, room, await resident.missingEvents(roomId, between))
    },
  }
}
