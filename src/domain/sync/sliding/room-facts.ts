import { createCache } from '../../../core/cache.ts'
import { roomNameOf } from '../../../core/event/content.ts'
import { isObject, type JsonObject } from '../../../core/json.ts'
import type { StateMap } from '../../../core/state/trie.ts'
import type { Reader } from '../../../store/db/db.ts'
import { getPlainFacts } from '../../../store/rooms/room-facts.ts'
import { MAX_FACT_CHARS } from '../../limits/sliding-sync.ts'
import type { RoomRegistry } from '../../rooms/room/registry.ts'
import type { Room } from '../../rooms/room/room.ts'
import type { OrderedRoom } from './ordered-room.ts'
import type { Recency } from './recency.ts'

/** What lists filter by in a room's state. */
export interface RoomFacts {
  readonly isEncrypted: boolean
  readonly type: string | null
  readonly name: string
}

/**
 * The facts of each room that the user may know, by number.
 *
 * @param ofOther finds out what a user knows of a room that they are not in
 */
export type RoomFactsOf = (
  rooms: readonly OrderedRoom[],
  ofOther: (room: OrderedRoom) => Promise<RoomFacts>,
) => Promise<ReadonlyMap<number, RoomFacts>>

/** Facts of joined rooms, as of an event of the room; and of others, as of a membership. */
interface Known extends RoomFacts {
  readonly at: number
}

const MAX_ROOMS = 100_000
const MAX_OTHERS = 20_000

/** Rooms that are not in memory are not loaded for it: what is missing of their facts comes in one query. */
export function createRoomFacts(parts: {
  readonly db: Reader
  readonly registry: RoomRegistry
  readonly recency: Recency
}): RoomFactsOf {
  const { db, registry, recency } = parts
  const joined = createCache<number, Known>(MAX_ROOMS)
  const others = createCache<number, RoomFacts>(MAX_OTHERS)

  async function readJoined(rooms: readonly OrderedRoom[], into: Map<number, RoomFacts>): Promise<void> {
    const keep = (nid: number, at: number, facts: RoomFacts): void => {
      joined.set(nid, { ...facts, at })
      into.set(nid, facts)
    }
    const cold: number[] = []
    for (const { nid } of rooms) {
      const at = recency.of(nid)
      const room = registry.peekAlive(nid)
      if (room) keep(nid, at, await factsIn(room, room.committed.state))
      else cold.push(nid)
    }
    if (cold.length === 0) return
    const positions = new Map(cold.map((nid) => [nid, recency.of(nid)]))
    const found = await getPlainFacts(db, cold)
    const left = new Set(cold)
    for (const { room_nid: nid, is_encrypted: isEncrypted, create, name } of found) {
      left.delete(nid)
      keep(nid, positions.get(nid)!, { isEncrypted, type: typeIn(contentOf(create)), name: nameIn(contentOf(name)) })
    }
    await Promise.all(
      [...left].map(async (nid) => {
        const room = await registry.getByNid(nid)
        keep(nid, positions.get(nid)!, await factsIn(room, room.committed.state))
      }),
    )
  }

  return async (rooms, ofOther) => {
    const found = new Map<number, RoomFacts>()
    const unknown: OrderedRoom[] = []
    for (const room of rooms) {
      const known = room.isJoined ? joined.get(room.nid) : others.get(room.membership.eventNid)
      const isCurrent = known !== undefined && (!room.isJoined || (known as Known).at >= room.recency)
      if (isCurrent) found.set(room.nid, known)
      else unknown.push(room)
    }
    await readJoined(
      unknown.filter(({ isJoined }) => isJoined),
      found,
    )
    for (const room of unknown) {
      if (room.isJoined) continue
      const facts = await ofOther(room)
      others.set(room.membership.eventNid, facts)
      found.set(room.nid, facts)
    }
    return found
  }
}

/** The facts in a state of a room. */
export async function factsIn(room: Room, state: StateMap): Promise<RoomFacts> {
  const [create, name] = await Promise.all([
    room.stateEvent('m.room.create', '', state),
    room.stateEvent('m.room.name', '', state),
  ])
  const isEncrypted = room.stateNid(state, 'm.room.encryption', '') !== 0
  return { isEncrypted, type: typeIn(create?.content), name: kept(roomNameOf(name) ?? '') }
}

function contentOf(json: string | null): JsonObject | undefined {
  const content = json === null ? undefined : (JSON.parse(json) as JsonObject).content
  return isObject(content) ? content : undefined
}

/** What an event's content says; it may be anything. */
export const typeIn = (create: JsonObject | undefined): string | null =>
  typeof create?.type === 'string' && create.type !== '' ? kept(create.type) : null
export const nameIn = (name: JsonObject | undefined): string => (typeof name?.name === 'string' ? kept(name.name) : '')

/** The beginning of a text, as it is kept for many rooms: a copy, because a mere part of a text keeps all of it in memory. */
const kept = (text: string): string =>
  text.length <= MAX_FACT_CHARS ? text : Buffer.from(text.slice(0, MAX_FACT_CHARS)).toString()
