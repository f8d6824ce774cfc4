import type { JsonObject } from '../../../core/json.ts'
import type { ReceiptRow } from '../../../store/events/receipts.ts'

/** The content of `m.receipt` for each room: `{event_id: {kind: {user_id: {ts, thread_id?}}}}`. */
export function receiptContents(rows: readonly ReceiptRow[]): Map<number, JsonObject> {
  const rooms = new Map<number, JsonObject>()
  for (const row of rows) {
    const room = entry(rooms, row.room_nid)
    const users = child(child(room, row.event_id), row.kind)
    // The format has one place for each user's receipts at an event. The receipt for the whole room takes it, because it says the most.
    if (row.thread_id !== '' && Object.hasOwn(users, row.user_id)) continue
    users[row.user_id] = row.thread_id === '' ? { ts: row.ts } : { ts: row.ts, thread_id: row.thread_id }
  }
  return rooms
}

function entry(rooms: Map<number, JsonObject>, roomNid: number): JsonObject {
  const known = rooms.get(roomNid)
  if (known) return known
  const content: JsonObject = {}
  rooms.set(roomNid, content)
  return content
}

function child(parent: JsonObject, key: string): JsonObject {
  if (!Object.hasOwn(parent, key)) parent[key] = {}
  return parent[key] as JsonObject
}
