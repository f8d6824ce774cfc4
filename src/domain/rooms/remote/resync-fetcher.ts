import type { Logger } from 'pino'
import { ProtocolError } from '../../../core/errors.ts'
import type { ServerName } from '../../../core/ids.ts'
import type { Peers } from '../../../outbound/peers.ts'
import { MAX_RESYNC_SERVERS } from '../../limits.ts'
import type { PartialState } from '../room/partial-state.ts'
import type { PartialStateRooms } from '../room/partial-state-rooms.ts'
import type { RoomRegistry } from '../room/registry.ts'
import type { PartialStateKicks } from './partial-state-kicks.ts'
import type { ResyncWriter } from './resync-writer.ts'

/**
 * One round of a resync: asks the servers in a room for the state before our join, one after another, until one gives a state that can be
 * written.
 *
 * @throws Error with what the last server said, when none could be used; {@link Refused} when no server that answers says that we are in
 * the room
 */
export type ResyncFetcher = (partialState: PartialState) => Promise<void>

export interface ResyncFetcherParts {
  readonly log: Pick<Logger, 'info'>
  readonly peers: Pick<Peers, 'state'>
  readonly outgoing: { reaches(server: ServerName): boolean }
  readonly registry: RoomRegistry
  readonly partialStateRooms: PartialStateRooms
  readonly kicks: PartialStateKicks
}

/** When a resync stops. */
export interface ResyncEnd {
  /** Rejects when the process shuts down. */
  readonly closed: Promise<never>
  /** Whether the room still lacks its members, and the process is not shutting down. */
  isWanted(partialState: PartialState): boolean
}

/** No server that answers gives this server the room's state: none of our users is in it, or so they say. */
export class Refused extends Error {}

/** Why a server cannot be used. */
interface Failure {
  readonly reason: string
  readonly kind: 'silent' | 'refused' | 'useless'
}

export function createResyncFetcher(parts: ResyncFetcherParts, write: ResyncWriter, end: ResyncEnd): ResyncFetcher {
  const { log, registry, partialStateRooms } = parts

  /** The resident server and some of the others, which change from round to round. */
  function serversToAsk({ resident, servers, failures }: PartialState): ServerName[] {
    const others = [...servers].filter((server) => server !== resident)
    const from = others.length === 0 ? 0 : (failures * (MAX_RESYNC_SERVERS - 1)) % others.length
    const all = [resident, ...others.slice(from), ...others.slice(0, from)]
    return all.filter((server) => parts.outgoing.reaches(server)).slice(0, MAX_RESYNC_SERVERS)
  }

  async function fetchFrom(server: ServerName, partialState: PartialState): Promise<Failure | undefined> {
    try {
      const asking = parts.peers.state(server, partialState.roomId, partialState.joinId)
      asking.catch(() => {})
      // If our users leave the room, this stops waiting for the answer.
      const answer = await Promise.race([asking, end.closed, partialState.whole])
      const reason = answer && (await write(partialState, answer, () => end.isWanted(partialState)))
      return reason === undefined ? undefined : { reason, kind: 'useless' }
    } catch (error) {
      if (!(error instanceof ProtocolError) || error.status === 503) throw error
      return { reason: error.message, kind: error.errcode === 'M_FORBIDDEN' ? 'refused' : 'silent' }
    }
  }

  return async (partialState) => {
    const room = await registry.get(partialState.roomId)
    // The join was never written, or no user of ours is in the room any more.
    if (room?.nid !== partialState.roomNid || room.localMembers.size === 0) return partialStateRooms.leave(partialState)
    let last = 'no server of the room is known that could be asked'
    const failures: Failure['kind'][] = []
    for (const server of serversToAsk(partialState)) {
      const failure = await fetchFrom(server, partialState)
      if (failure === undefined || !end.isWanted(partialState)) return
      const { reason, kind } = failure
      last = `${server}: ${reason}`
      failures.push(kind)
      log.info({ roomId: partialState.roomId, server, reason }, 'a server could not be used for the resync of a room')
    }
    if (!failures.includes('refused') || failures.includes('useless')) throw new Error(last)
    await parts.kicks.judge(partialState)
    if (end.isWanted(partialState)) throw new Refused(last)
  }
}
