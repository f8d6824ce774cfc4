import { isRoomId, isServerName, type RoomId, type ServerName } from '../ids.ts'
import { isObject, type JsonObject, type JsonValue } from '../json.ts'

/** A child room of a space (client-server API, `m.space.child`). */
export interface SpaceChild {
  readonly roomId: RoomId
  /** Servers for joining the room. */
  readonly via: readonly ServerName[]
  readonly isSuggested: boolean
  readonly order: string | undefined
  readonly ts: number
  /** The stripped event with `origin_server_ts`, for users outside the room. */
  readonly shown: JsonObject
}

const ORDER = /^[\x20-\x7e]{1,50}$/

/** Reads an `m.space.child`; undefined if it has no room id or no `via`, like the event of a removed child. */
export function readSpaceChild(event: JsonValue | undefined): SpaceChild | undefined {
  if (!isObject(event)) return undefined
  const { type, state_key: roomId, sender, content, origin_server_ts: ts } = event
  if (type !== 'm.space.child' || !isRoomId(roomId) || !isObject(content) || typeof sender !== 'string')
    return undefined
  const via = Array.isArray(content.via)
    ? content.via.filter((one) => typeof one === 'string').filter(isServerName)
    : []
  if (via.length === 0 || typeof ts !== 'number') return undefined
  const { order } = content
  return {
    roomId,
    via,
    isSuggested: content.suggested === true,
    order: typeof order === 'string' && ORDER.test(order) ? order : undefined,
    ts,
    shown: { type, state_key: roomId, sender, content, origin_server_ts: ts },
  }
}

/** Sorts children with an `order` first, by it; then by age, then by room id (client-server API, "Ordering of children within a space"). */
export function compareSpaceChildren(one: SpaceChild, other: SpaceChild): number {
  if (one.order !== other.order) {
    if (one.order === undefined) return 1
    if (other.order === undefined) return -1
    return one.order < other.order ? -1 : 1
  }
  return one.ts - other.ts || (one.roomId < other.roomId ? -1 : Number(one.roomId > other.roomId))
}
