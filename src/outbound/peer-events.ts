import { ProtocolError } from '../core/errors.ts'
import type { EventId, RoomId } from '../core/ids.ts'
import type { JsonObject, JsonValue, ReadJson } from '../core/json.ts'
import type { EventList } from './event-lists.ts'
import { MAX_EVENTS_ANSWER_BYTES, MAX_STATE_ASKED_SINGLY, STATE_EVENTS_AT_ONCE } from './limits.ts'
import { UnknownPath } from './peer-errors.ts'
import {
  LONG_MS,
  listIn,
  objectOf,
  type PeerRequests,
  path,
  SHORT_MS,
  STATE_MS,
  type StateAnswer,
} from './peer-requests.ts'

/** Fetches a room's events and state from other homeservers. Each throws as the operations of `Peers` do. */
export interface PeerEvents {
  missingEvents(of: string, roomId: RoomId, body: JsonObject): Promise<readonly ReadJson[]>
  backfill(of: string, roomId: RoomId, eventIds: readonly EventId[], limit: number): Promise<readonly ReadJson[]>
  stateIds(of: string, roomId: RoomId, eventId: EventId): Promise<{ state: EventId[]; authChain: EventId[] }>
  /** The state before an event. */
  state(of: string, roomId: RoomId, eventId: EventId): Promise<StateAnswer>
  event(of: string, eventId: EventId): Promise<readonly ReadJson[]>
  /** The auth chain of an event. */
  eventAuth(of: string, roomId: RoomId, eventId: EventId): Promise<readonly ReadJson[]>
}

/** A client waits for the history. */
const HISTORY_MS = 20_000

export function createPeerEvents({ ask, get, askState }: PeerRequests): PeerEvents {
  const stateIds: PeerEvents['stateIds'] = async (of, roomId, eventId) => {
    const where = `${path('v1', 'state_ids', roomId)}?event_id=${encodeURIComponent(eventId)}`
    const answer = objectOf(of, await get(of, where, { timeoutMs: LONG_MS, maxBytes: MAX_EVENTS_ANSWER_BYTES }))
    return { state: idsIn(answer.pdu_ids), authChain: idsIn(answer.auth_chain_ids) }
  }
  const event: PeerEvents['event'] = async (of, eventId) =>
    listIn(of, await get(of, path('v1', 'event', eventId)), 'pdus')

  return {
    async state(of, roomId, eventId) {
      const where = `${path('v1', 'state', roomId)}?event_id=${encodeURIComponent(eventId)}`
      return askState(of, { method: 'GET', path: where }, 'pdus').catch(async (error: unknown) => {
        // The state may be too large for one answer, or the server may not know the operation.
        const isRefused = error instanceof ProtocolError && error.status < 500 && error.errcode !== 'M_FORBIDDEN'
        if (!isRefused && !(error instanceof UnknownPath)) throw error
        const ids = await stateIds(of, roomId, eventId).catch(() => undefined)
        if (ids === undefined || ids.state.length === 0) throw error
        return eventByEvent(ids, error, async (id) => (await event(of, id))[0])
      })
    },
    async missingEvents(of, roomId, body) {
      const where = path('v1', 'get_missing_events', roomId)
      const answer = await ask(
        of,
        { method: 'POST', path: where, body },
        { timeoutMs: SHORT_MS, maxBytes: MAX_EVENTS_ANSWER_BYTES },
      )
      return listIn(of, answer, 'events')
    },
    async backfill(of, roomId, eventIds, limit) {
      const query = eventIds.map((id) => `v=${encodeURIComponent(id)}`).join('&')
      const where = `${path('v1', 'backfill', roomId)}?${query}&limit=${limit}`
      return listIn(of, await get(of, where, { timeoutMs: HISTORY_MS, maxBytes: MAX_EVENTS_ANSWER_BYTES }), 'pdus')
    },
    stateIds,
    event,
    async eventAuth(of, roomId, eventId) {
      const limits = { timeoutMs: SHORT_MS, maxBytes: MAX_EVENTS_ANSWER_BYTES }
      return listIn(of, await get(of, path('v1', 'event_auth', roomId, eventId), limits), 'auth_chain')
    },
  }
}

/** Fetches a state by its event ids, one event at a time. @throws what `event` throws, and `tooLarge` */
async function eventByEvent(
  { state, authChain }: { readonly state: readonly EventId[]; readonly authChain: readonly EventId[] },
  tooLarge: unknown,
  event: (id: EventId) => Promise<ReadJson | undefined>,
): Promise<StateAnswer> {
  const ids = [...new Set([...authChain, ...state])]
  if (ids.length > MAX_STATE_ASKED_SINGLY) throw tooLarge
  const found = new Map<EventId, ReadJson>()
  const left = ids.values()
  const until = performance.now() + STATE_MS
  const next = async (): Promise<void> => {
    for (const id of left) {
      if (performance.now() > until) throw tooLarge
      const one = await event(id)
      if (one) found.set(id, one)
    }
  }
  await Promise.all(Array.from({ length: STATE_EVENTS_AT_ONCE }, next))
  const listOf = (wanted: readonly EventId[]): EventList => {
    const events = wanted.flatMap((id) => found.get(id) ?? [])
    return { length: events.length, at: (index) => events[index] }
  }
  return { state: listOf(state), authChain: listOf(authChain) }
}

function idsIn(list: JsonValue | undefined): EventId[] {
  return Array.isArray(list) ? (list.filter((id) => typeof id === 'string') as EventId[]) : []
}
