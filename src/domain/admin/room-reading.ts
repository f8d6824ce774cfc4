import { ProtocolError } from '../../core/errors.ts'
import type { EventId, RoomId, ServerName, UserId } from '../../core/ids.ts'
import type { JsonObject } from '../../core/json.ts'
import type { JsonBytes } from '../../core/json-bytes.ts'
import type { Requester } from '../accounts/requester.ts'
import type { Spaces } from '../rooms/act/spaces/spaces.ts'
import type { TreeQuery } from '../rooms/act/spaces/tree.ts'
import type { ContextQuery, MessagesQuery } from '../rooms/read/history-reader.ts'
import type { RoomReader } from '../rooms/read/reader.ts'
import type { Direction } from '../rooms/read/timeline.ts'
import type { EventCache } from '../rooms/room/event-cache.ts'
import type { Head } from '../rooms/room/head.ts'
import { powerLevelsOf } from '../rooms/room/power.ts'
import type { RoomRegistry } from '../rooms/room/registry.ts'
import type { Room } from '../rooms/room/room.ts'
import type { Appender } from '../rooms/write/append.ts'

/** What operators read of rooms, whoever is in them. Functions throw `M_NOT_FOUND` for what this server does not know. */
export interface RoomReading {
  messages(roomId: RoomId, query: MessagesQuery): Promise<JsonBytes>
  context(roomId: RoomId, eventId: EventId, query: ContextQuery): Promise<JsonBytes>
  eventAtTime(roomId: RoomId, ts: number, direction: Direction): Promise<JsonObject>
  hierarchy(roomId: RoomId, query: TreeQuery): Promise<JsonObject>
  /** The events that no event refers to yet. */
  extremities(roomId: RoomId): Promise<JsonObject>
  /**
   * Joins the forward extremities by events without content, each of which refers to as many as an event may. Returns how many are gone.
   * @throws ProtocolError `M_FORBIDDEN` if nobody of this server may send in the room
   */
  joinExtremities(roomId: RoomId): Promise<number>
}

/** What clients and other servers take for nothing but a join of branches. */
const JOINING_TYPE = 'org.matrix.dummy_event'
/** Each join leaves fewer extremities; this many are enough for all that a room may have. */
const MAX_JOINS = 60

export function createRoomReading(parts: {
  readonly serverName: ServerName
  readonly registry: RoomRegistry
  readonly events: EventCache
  readonly reader: Pick<RoomReader, 'messages' | 'context' | 'eventAtTime'>
  readonly spaces: Pick<Spaces, 'wholeHierarchy'>
  readonly appender: Appender
}): RoomReading {
  const { registry, events, reader, spaces, appender } = parts
  // Nobody: no user has the number 0. What is read depends on no membership and no token.
  const nobody: Requester = {
    userId: `@:${parts.serverName}` as UserId,
    userNid: 0,
    deviceId: '',
    tokenNid: 0,
    isGuest: false,
  }

  async function mustKnow(roomId: RoomId): Promise<Room> {
    const room = await registry.get(roomId)
    if (room) return room
    throw new ProtocolError('M_NOT_FOUND', 'This server knows no room of that id.')
  }

  async function speakerOf(room: Room) {
    const levels = await powerLevelsOf(room)
    const needed = levels.toSend(JOINING_TYPE, false)
    const speaker = [...room.localMembers.values()].find(({ userId }) => levels.levelOf(userId) >= needed)
    if (speaker) return speaker
    throw new ProtocolError('M_FORBIDDEN', 'Nobody of this server may send events in the room.')
  }

  const width = ({ extremities }: Head): number => extremities.length

  return {
    messages: (roomId, query) => reader.messages(nobody, roomId, query),
    context: (roomId, eventId, query) => reader.context(nobody, roomId, eventId, query),
    eventAtTime: async (roomId, ts, direction) => ({ ...(await reader.eventAtTime(nobody, roomId, ts, direction)) }),
    async hierarchy(roomId, query) {
      await mustKnow(roomId)
      return spaces.wholeHierarchy(roomId, query)
    },
    async extremities(roomId) {
      const room = await mustKnow(roomId)
      const { extremities } = room.committed
      const found = await events.load(extremities.map(({ nid }) => nid))
      const results = extremities.map(({ nid, id, after }) => {
        const event = found.get(nid)
        return {
          event_id: id,
          state_group: after.seq,
          depth: event ? Number(event.pdu.depth) : null,
          received_ts: event?.ts ?? null,
        }
      })
      return { count: results.length, results }
    },
    async joinExtremities(roomId) {
      const room = await mustKnow(roomId)
      const before = width(room.committed)
      for (let joins = 0, left = before; left > 1 && joins < MAX_JOINS; joins++) {
        const { userId, userNid } = await speakerOf(await mustKnow(roomId))
        const draft = { type: JOINING_TYPE, content: {}, sender: userId, senderNid: userNid }
        await appender.append(roomId, () => [draft])
        const now = width((await mustKnow(roomId)).committed)
        if (now >= left) break
        left = now
      }
      return Math.max(0, before - width((await mustKnow(roomId)).committed))
    },
  }
}
