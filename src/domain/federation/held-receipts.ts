import { isRoomId, isUserId, type ServerName, serverOf, type UserId } from '../../core/ids.ts'
import { isObject, type JsonObject, type JsonValue } from '../../core/json.ts'
import type { KeyedQueue } from '../../core/keyed-queue.ts'
import type { Database } from '../../store/db/db.ts'
import {
  getHeldReceipts,
  type HeldReceiptRow,
  holdReceipts,
  removeHeldReceipts,
} from '../../store/federation/held-receipts.ts'
import { HELD_RECEIPT_CAPS, MAX_HELD_RECEIPT_CHARS, MAX_RECEIPTS_PER_EDU } from '../limits.ts'
import type { PartialState } from '../rooms/room/partial-state.ts'
import type { PartialStateRooms } from '../rooms/room/partial-state-rooms.ts'
import type { RoomRegistry } from '../rooms/room/registry.ts'
import type { ServerAccess } from './server-access.ts'

/**
 * Receipts of remote users in partial-state rooms. During the resync we do not know whether the user is in the room, nor the event.
 * Nobody sends a receipt again, so it is held.
 */
export interface HeldReceipts {
  /** Stores the receipts of an `m.receipt` that must wait. Resolves once they are durable, with the content without them. */
  hold(origin: ServerName, content: JsonObject): Promise<JsonObject>
  /** Processes some held receipts. Returns false if there are none. */
  takeSome(partialState: PartialState): Promise<boolean>
}

type Row = Pick<HeldReceiptRow, 'user_id' | 'thread_id' | 'json'>

const TAKEN_AT_ONCE = 100

export function createHeldReceipts(parts: {
  readonly db: Database
  readonly registry: Pick<RoomRegistry, 'get'>
  readonly access: Pick<ServerAccess, 'isIn'>
  readonly partialStateRooms: Pick<PartialStateRooms, 'all'>
  /** Runs holding and the end of holding one after another for a room. */
  readonly turns: KeyedQueue<number>
  /** Processes the content of an `m.receipt`. */
  take(origin: ServerName, content: JsonObject): Promise<void>
}): HeldReceipts {
  const { db, registry, access, turns } = parts

  /** Whether receipts of a room must wait. Receipts of a server that is not known to be in the room do not wait, and have no effect. */
  async function holdIn(origin: ServerName, roomId: string, kinds: JsonValue): Promise<boolean> {
    const room = isRoomId(roomId) ? await registry.get(roomId) : undefined
    if (!room?.partialState?.holdsEvents || !(await access.isIn(origin, room))) return false
    const { partialState, nid: roomNid } = room
    const rows = rowsIn(origin, kinds)
    return turns.run(roomNid, async () => {
      if (!partialState.holdsEvents) return false
      if (rows.length > 0) await db.tx((tx) => holdReceipts(tx, { roomNid, origin }, rows, HELD_RECEIPT_CAPS))
      return true
    })
  }

  return {
    async hold(origin, content) {
      if (parts.partialStateRooms.all().length === 0) return content
      const rest: [string, JsonValue][] = []
      for (const [roomId, kinds] of Object.entries(content)) {
        if (!(await holdIn(origin, roomId, kinds))) rest.push([roomId, kinds])
      }
      return Object.fromEntries(rest)
    },
    async takeSome({ roomNid, roomId }) {
      const rows = await getHeldReceipts(db, roomNid, TAKEN_AT_ONCE)
      for (const { origin, user_id, json } of rows) {
        await parts.take(origin, { [roomId]: { 'm.read': { [user_id]: JSON.parse(json) as JsonObject } } })
      }
      if (rows.length > 0) await db.tx((tx) => removeHeldReceipts(tx, roomNid, rows))
      return rows.length > 0
    },
  }
}

function rowsIn(origin: ServerName, kinds: JsonValue): Row[] {
  const read = isObject(kinds) ? kinds['m.read'] : undefined
  if (!isObject(read)) return []
  return Object.entries(read)
    .slice(0, MAX_RECEIPTS_PER_EDU)
    .flatMap(([userId, said]) => rowOf(origin, userId, said) ?? [])
}

function rowOf(origin: ServerName, userId: string, said: JsonValue): Row | undefined {
  if (!isUserId(userId) || serverOf(userId) !== origin || !isObject(said)) return undefined
  const { event_ids: ids, data } = said
  const { ts, thread_id: threadId } = isObject(data) ? data : {}
  const of = typeof threadId === 'string' ? { thread_id: threadId } : {}
  const json = JSON.stringify({
    event_ids: Array.isArray(ids) ? ids.slice(0, 1) : [],
    data: { ...(typeof ts === 'number' && { ts }), ...of },
  })
  const isUsual = json.length <= MAX_HELD_RECEIPT_CHARS && !`${userId}${threadId}`.includes('\0')
  return isUsual ? { user_id: userId as UserId, thread_id: of.thread_id ?? '', json } : undefined
}
