import type { Logger } from 'pino'
import type { EventId, ServerName } from '../../core/ids.ts'
import type { ReadJson } from '../../core/json.ts'
import type { Peers } from '../../outbound/peers.ts'
import type { FederationQueries } from '../rooms/receive/federation-queries.ts'

/** Single events that are requested in parallel. */
const AT_ONCE = 16

/** Sends the room engine's questions to other servers. If a server does not answer, the result is undefined or empty. */
export function createFederationQueries({
  peers,
  log,
}: {
  readonly peers: Peers
  readonly log: Logger
}): FederationQueries {
  async function orNothing<T>(of: ServerName, kind: string, answer: Promise<T>, nothing: T): Promise<T> {
    try {
      return await answer
    } catch (error) {
      log.info({ server: of, kind, reason: (error as Error).message }, 'another server gave no answer')
      return nothing
    }
  }

  async function eachOf(of: ServerName, eventIds: readonly EventId[]): Promise<ReadJson[]> {
    const found: ReadJson[] = []
    const left = [...eventIds]
    const next = async (): Promise<void> => {
      for (let id = left.pop(); id !== undefined; id = left.pop()) {
        found.push(...(await orNothing(of, 'event', peers.event(of, id), [])))
      }
    }
    await Promise.all(Array.from({ length: Math.min(AT_ONCE, left.length) }, next))
    return found
  }

  return {
    missingEvents(of, roomId, { earliest, latest, limit, minDepth }) {
      const body = { earliest_events: [...earliest], latest_events: [...latest], limit, min_depth: minDepth }
      return orNothing(of, 'get_missing_events', peers.missingEvents(of, roomId, body), [])
    },
    stateIds: (of, roomId, eventId) => orNothing(of, 'state_ids', peers.stateIds(of, roomId, eventId), undefined),
    events: (of, _roomId, eventIds) => eachOf(of, eventIds),
  }
}
