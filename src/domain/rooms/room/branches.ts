import { setImmediate } from 'node:timers/promises'
import { AuthGraph } from '../../../core/state/graph.ts'
import { resolveStates, type StateEvent } from '../../../core/state/resolve.ts'
import type { StateMap } from '../../../core/state/trie.ts'
import type { Database } from '../../../store/db/db.ts'
import { getAuthEdges } from '../../../store/events/events.ts'
import type { StatePoint } from '../../../store/events/state.ts'
import { stateAt } from './past-state.ts'
import type { Room } from './room.ts'
import type { RoomEvent } from './room-event.ts'

/** The states of a room's branches, and their resolution. */
export interface Branches {
  /** The state at a point. The point may still be on its way to the database. */
  stateAt(room: Room, point: StatePoint): Promise<StateMap>
  /**
   * Resolves several states into one, by the algorithm of the room's version. @param fresh an event that they may hold and that is not
   * enqueued yet
   */
  resolve(room: Room, states: readonly StateMap[], fresh?: RoomEvent): Promise<StateMap>
  /** Which events authorise which, including events that are not written yet. */
  authGraph(room: Room): Promise<AuthGraph>
}

export function createBranches({ db, persister }: { db: Database; persister: { idle(): Promise<void> } }): Branches {
  const authGraph = (room: Room): Promise<AuthGraph> => room.authGraph(() => readAuthGraph(db, room.nid))

  return {
    authGraph,
    async stateAt(room, point) {
      const kept = room.branchState(point)
      if (kept) return kept
      // The log is complete only when nothing is still being written to it.
      if (!room.isSettled) await persister.idle()
      const state = await stateAt(db, room, point)
      room.keepBranch(point, state)
      return state
    },
    async resolve(room, states, fresh) {
      const distinct = [...new Set(states)]
      if (distinct.length === 1) return distinct[0]!
      const graph = await authGraph(room)
      if (fresh?.authNids) graph.add(fresh.nid, fresh.authNids)
      return resolveStates(room.version, distinct, {
        graph,
        keyOf: (type, stateKey) => room.keys.idOf(type, stateKey),
        async load(nids) {
          const events = await room.events(fresh ? nids.filter((nid) => nid !== fresh.nid) : nids)
          if (fresh) events.set(fresh.nid, fresh)
          return new Map([...events].map(([nid, event]) => [nid, asJudged(event)]))
        },
        pause: setImmediate,
      })
    },
  }
}

/** Resolution uses events as they were before redaction, because not all servers have seen the same redactions. */
function asJudged(event: RoomEvent): StateEvent {
  if (event.authContent === undefined) return event
  return { nid: event.nid, id: event.id, keyId: event.keyId, pdu: event.authPdu }
}

async function readAuthGraph(db: Database, roomNid: number): Promise<AuthGraph> {
  const graph = new AuthGraph()
  for (const { event_nid, auth_nids } of await getAuthEdges({ query: db.scan }, roomNid))
    graph.add(event_nid, auth_nids)
  return graph
}
