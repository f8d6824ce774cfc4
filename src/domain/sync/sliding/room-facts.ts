import { createBoundedMap } from '../../../core/cache.ts'
import { roomNameOf } from '../../../core/event/content.ts'
import { isObject, type JsonObject } from '../../../core/json.ts'
import type { StateMap } from '../../../core/state/trie.ts'
import type { Database } from '../../../store/db/db.ts'
import { getPlainFacts, getRoomTypes, getRoomTypesOfUser, type RoomsOfType } from '../../../store/rooms/room-facts.ts'
import { MAX_FACT_CHARS } from '../../limits/sliding-sync.ts'
import type { RoomRegistry } from '../../rooms/room/registry.ts'
import type { Room } from '../../rooms/room/room.ts'
import type { OrderedRoom } from './ordered-room.ts'
import { MANY, type Recency } from './recency.ts'

/** What lists filter by in a room's state. */
export interface RoomFacts {
  readonly isEncrypted: boolean
  readonly type: string | null
  readonly name: string
}

/** Remembers facts of rooms: those that users are in by room, those of others by membership. */
export interface KnownFacts {
  /** The type of a room that the user is in. It never changes. Undefined if it was not learnt yet. */
  typeOf(roomNid: number): string | null | undefined
  learnTypes(userNid: number, roomNids: readonly number[]): Promise<ReadonlyMap<number, string | null>>
  /** Learns the types of all rooms that a user is in, also before it is known which they are. */
  learnAllTypes(userNid: number): Promise<void>
  /** Undefined if the facts are not known, or of before the newest event. */
  of(room: OrderedRoom): RoomFacts | undefined
  /** @param ofOther finds out what a user knows of a room that they are not in */
  learn(
    rooms: readonly OrderedRoom[],
    ofOther: (room: OrderedRoom) => Promise<RoomFacts>,
  ): Promise<ReadonlyMap<number, RoomFacts>>
}

/** Facts of joined rooms, as of an event of the room. */
interface Known extends RoomFacts {
  readonly at: number
}

const MAX_ROOMS = 100_000
const MAX_OTHERS = 20_000

/** Rooms that are not in memory are not loaded for it: what is missing of their facts comes in one query. */
export function createRoomFacts(parts: {
  readonly db: Pick<Database, 'query' | 'bulk'>
  readonly registry: RoomRegistry
  readonly recency: Recency
}): KnownFacts {
  const { db, registry, recency } = parts
  const joined = createBoundedMap<number, Known>(MAX_ROOMS)
  const types = createBoundedMap<number, string | null>(MAX_ROOMS)
  const others = createBoundedMap<number, RoomFacts>(MAX_OTHERS)

  async function learnJoined(roomNids: readonly number[], into: Map<number, RoomFacts>): Promise<void> {
    const keep = (nid: number, at: number, facts: RoomFacts): void => {
      joined.set(nid, { ...facts, at })
      types.set(nid, facts.type)
      into.set(nid, facts)
    }
    const cold: number[] = []
    for (const nid of roomNids) {
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
    await inMemory([...left], (nid, facts) => keep(nid, positions.get(nid)!, facts))
  }

  async function inMemory(roomNids: readonly number[], keep: (nid: number, facts: RoomFacts) => void): Promise<void> {
    await Promise.all(
      roomNids.map(async (nid) => {
        const room = await registry.getByNid(nid)
        keep(nid, await factsIn(room, room.committed.state))
      }),
    )
  }

  async function takeTypes(reading: Promise<RoomsOfType[]>): Promise<Map<number, string | null>> {
    const found = new Map<number, string | null>()
    for (const { room_nids: nids, create } of await reading) {
      const type = typeIn(contentOf(create))
      for (const text of nids.split(',')) {
        const nid = Number(text)
        types.set(nid, type)
        found.set(nid, type)
      }
    }
    return found
  }

  return {
    typeOf: (roomNid) => types.get(roomNid),

    async learnAllTypes(userNid) {
      await takeTypes(getRoomTypesOfUser(db.bulk, userNid))
    },

    async learnTypes(userNid, roomNids) {
      const isMany = roomNids.length >= MANY
      const found = await takeTypes(isMany ? getRoomTypesOfUser(db.bulk, userNid) : getRoomTypes(db, roomNids))
      const left = roomNids.filter((nid) => !found.has(nid))
      if (left.length === 0) return found
      const others = new Map<number, RoomFacts>()
      await learnJoined(left, others)
      for (const [nid, { type }] of others) found.set(nid, type)
      return found
    },

    of({ nid, isJoined, recency: newest, membership }) {
      if (!isJoined) return others.get(membership.eventNid)
      const known = joined.get(nid)
      return known !== undefined && known.at >= newest ? known : undefined
    },

    async learn(rooms, ofOther) {
      const found = new Map<number, RoomFacts>()
      const isIn = rooms.filter(({ isJoined }) => isJoined).map(({ nid }) => nid)
      if (isIn.length > 0) await learnJoined(isIn, found)
      for (const room of rooms) {
        if (room.isJoined) continue
        const facts = await ofOther(room)
        others.set(room.membership.eventNid, facts)
        found.set(room.nid, facts)
      }
      return found
    },
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
