import type { Config } from '../../../config/schema.ts'
import type { RoomId } from '../../../core/ids.ts'
import type { Database } from '../../../store/db/db.ts'
import type { Clock } from '../../clock.ts'
import { OnlyWhereServed } from '../../standby/only-where-served.ts'
import type { EventCache } from '../room/event-cache.ts'
import { createLifetimes, type Lifetimes } from '../room/retention/lifetimes.ts'
import type { Room } from '../room/room.ts'
import type { RoomEvent } from '../room/room-event.ts'
import type { RoomMemory } from '../room/room-memory.ts'
import { createRoomAccess } from './access.ts'
import { createBundleAggregations } from './bundles.ts'
import { createCurrentRooms } from './current-rooms.ts'
import { lookUpErasedUsers } from './erased-users.ts'
import { createHistoryReader, type HistoryReader } from './history-reader.ts'
import { lookUpIgnoredUsers } from './ignored-users.ts'
import { createMembersReader, type MembersReader, readJoinedRooms } from './members-reader.ts'
import { createPositions } from './positions.ts'
import { createKeepRelated } from './related.ts'
import { createRelationsReader, type RelationsReader } from './relations-reader.ts'
import { createStateReader, type StateReader } from './state-reader.ts'
import { createTimeline } from './timeline.ts'

/** What users read of rooms at a node that stands by. */
export type StandbyRoomReader = HistoryReader & StateReader & MembersReader & RelationsReader

export interface StandbyReaderParts {
  readonly config: Config
  readonly db: Database
  readonly clock: Clock
  readonly budget: RoomMemory['budget']
}

/**
 * Reads rooms for a node that stands by: by the same code as the node that serves, over copies that are true at the moment of the request.
 * It raises `OnlyWhereServed` where an answer needs more than rows: what other servers have, above all.
 */
export function createStandbyReader(parts: StandbyReaderParts): StandbyRoomReader {
  const { config, db, clock, budget } = parts
  const ignoredUsers = lookUpIgnoredUsers({ db })
  const lifetimes = withoutPurged(createLifetimes({ config, clock }))
  const positions = createPositions({ db })

  function viewOf(room: Room, events: EventCache): Omit<StandbyRoomReader, 'joinedRooms'> {
    const registry = { get: async () => room, getByNid: async () => room }
    const erasedUsers = lookUpErasedUsers({ db, events })
    const access = createRoomAccess({ db, registry, events, erasedUsers, ignoredUsers, budget, lifetimes })
    const bundle = createBundleAggregations({ db, events, access, ignoredUsers })
    const keepRelated = createKeepRelated({ db, events, access })
    const timeline = createTimeline({ db, events, access, clock, backfill: { fill: missing }, keepRelated })
    const history = createHistoryReader({ db, events, access, timeline, positions, clock, keepRelated, bundle })
    const state = createStateReader({ db, events, access, registry, clock })
    const members = createMembersReader({
      db,
      events,
      access,
      registry,
      positions,
      // Application services are answered where they are served.
      appservices: { isUserOf: () => false },
      clock,
    })
    const relations = createRelationsReader({ db, events, access, ignoredUsers, positions, clock, bundle })
    return {
      event: history.event,
      messages: history.messages,
      context: history.context,
      state: state.state,
      stateEvent: state.stateEvent,
      members: members.members,
      joinedMembers: members.joinedMembers,
      relations: relations.relations,
      threads: relations.threads,
    }
  }

  const find = createCurrentRooms({ db, serverName: config.server_name, budget, viewOf })

  async function reading(roomId: RoomId): Promise<Omit<StandbyRoomReader, 'joinedRooms'>> {
    const view = await find(roomId)
    if (view === undefined) throw new OnlyWhereServed('this server does not know the room')
    return view
  }

  return {
    event: async (by, roomId, eventId) => (await reading(roomId)).event(by, roomId, eventId),
    messages: async (by, roomId, query) => (await reading(roomId)).messages(by, roomId, query),
    context: async (by, roomId, eventId, query) => (await reading(roomId)).context(by, roomId, eventId, query),
    state: async (by, roomId) => (await reading(roomId)).state(by, roomId),
    stateEvent: async (by, roomId, type, stateKey, format) =>
      (await reading(roomId)).stateEvent(by, roomId, type, stateKey, format),
    members: async (by, roomId, query) => (await reading(roomId)).members(by, roomId, query),
    joinedMembers: async (by, roomId) => (await reading(roomId)).joinedMembers(by, roomId),
    relations: async (by, roomId, eventId, wish) => (await reading(roomId)).relations(by, roomId, eventId, wish),
    threads: async (by, roomId, wish) => (await reading(roomId)).threads(by, roomId, wish),
    joinedRooms: (by) => readJoinedRooms(db, by),
  }
}

/** Other servers are asked by the node that serves. */
function missing(): never {
  throw new OnlyWhereServed('a part of the history is not here')
}

/** A purge removes events without a write of the room: what it may have removed is read where the room is written. */
function withoutPurged(lifetimes: Lifetimes | undefined): Pick<Lifetimes, 'current'> {
  return {
    async current(room, events) {
      if (room.purgedTo > Number.NEGATIVE_INFINITY && events.some((event) => mayBePurged(room, event)))
        throw new OnlyWhereServed('the event may be being removed')
      return lifetimes === undefined ? events : lifetimes.current(room, events)
    },
  }
}

function mayBePurged({ purgedTo }: Room, { isState, pos }: RoomEvent): boolean {
  return !isState && !(pos > purgedTo)
}
