import { isRoomId, isUserId, type RoomId, type ServerName, serverOf, type UserId } from '../../core/ids.ts'
import { isObject, type JsonObject, type JsonValue } from '../../core/json.ts'
import type { Reader } from '../../store/db/db.ts'
import type { Clock } from '../clock.ts'
import type { ReceivedMessages } from '../e2e/received-messages.ts'
import type { DeviceLists } from '../keys/device-lists.ts'
import { MAX_RECEIPTS_PER_EDU } from '../limits.ts'
import type { Receipts } from '../rooms/read/receipts.ts'
import type { Typing } from '../rooms/read/typing.ts'
import type { EventCache } from '../rooms/room/event-cache.ts'
import type { RoomRegistry } from '../rooms/room/registry.ts'
import type { Room } from '../rooms/room/room.ts'
import type { Presence } from '../sync/presence.ts'
import type { Users } from '../users.ts'
import { createPresenceEdu } from './presence-edu.ts'
import type { ServerAccess } from './server-access.ts'
import type { EduHandler } from './transaction-edus.ts'

export interface EduParts {
  readonly registry: RoomRegistry
  readonly events: EventCache
  readonly users: Users
  readonly access: ServerAccess
  readonly typing: Pick<Typing, 'setFor'>
  readonly receipts: Pick<Receipts, 'receive'>
  readonly receivedMessages: ReceivedMessages
  readonly db: Reader
  readonly clock: Clock
  readonly presence: Pick<Presence, 'heard' | 'heardOfStranger'>
  readonly deviceLists: Pick<DeviceLists, 'changedElsewhere'>
}

/** How long a remote user counts as typing if no stop arrives. */
const TYPING_MS = 30_000

interface Member {
  readonly room: Room
  readonly userId: UserId
  readonly userNid: number
}

/** Processes EDUs of other servers about their own users. All other EDUs are ignored. */
export function createEduHandlers(parts: EduParts): Readonly<Record<string, EduHandler>> {
  const { registry, events, users, access, typing, receipts } = parts

  /** A user of that server who is in a room that we are in. */
  async function memberOf(origin: ServerName, roomId: JsonValue | undefined, userId: JsonValue | undefined) {
    if (!isRoomId(roomId) || !isUserId(userId) || serverOf(userId) !== origin) return undefined
    const room = await registry.get(roomId as RoomId)
    if (!room || room.localMembers.size === 0 || !(await access.isAllowed(origin, room))) return undefined
    const userNid = await users.find(userId)
    const isJoined = userNid !== undefined && (await access.serversOf(room)).get(origin)?.has(userNid)
    return isJoined ? { room, userId, userNid } : undefined
  }

  async function receipt({ room, ...who }: Member, read: JsonValue): Promise<void> {
    const { event_ids: ids, data } = isObject(read) ? read : {}
    const { ts, thread_id: threadId } = isObject(data) ? data : {}
    const eventId = Array.isArray(ids) ? ids[0] : undefined
    const event = typeof eventId === 'string' ? await events.getById(eventId) : undefined
    if (event?.roomNid !== room.nid || !event.isInTimeline) return
    if (threadId !== undefined && typeof threadId !== 'string') return
    const at = typeof ts === 'number' && Number.isSafeInteger(ts) ? ts : undefined
    await receipts.receive(who, event, at, threadId)
  }

  /** Nothing of remote device lists is stored. Whoever needs one fetches it, so a missed update does no harm. */
  async function deviceChange(origin: ServerName, { user_id: userId }: JsonObject): Promise<void> {
    if (!isUserId(userId) || serverOf(userId) !== origin) return
    const userNid = await users.find(userId)
    if (userNid !== undefined) await parts.deviceLists.changedElsewhere(userNid)
  }

  return {
    'm.device_list_update': deviceChange,
    'm.signing_key_update': deviceChange,
    'm.typing': async (origin, { room_id, user_id, typing: isTyping }) => {
      const member = await memberOf(origin, room_id, user_id)
      if (member) typing.setFor(member.room, member, isTyping === true ? TYPING_MS : 0)
    },
    'm.direct_to_device': parts.receivedMessages.receive,
    'm.presence': createPresenceEdu(parts),
    'm.receipt': async (origin, content) => {
      const all = Object.entries(content).flatMap(([roomId, kinds]) => {
        const read: JsonValue | undefined = isObject(kinds) ? kinds['m.read'] : undefined
        return Object.entries(isObject(read) ? (read as JsonObject) : {}).map((entry) => [roomId, ...entry] as const)
      })
      for (const [roomId, userId, read] of all.slice(0, MAX_RECEIPTS_PER_EDU)) {
        const member = await memberOf(origin, roomId, userId)
        if (member) await receipt(member, read)
      }
    },
  }
}
