import type { CompiledFilter } from '../../core/filter.ts'
import type { JsonObject } from '../../core/json.ts'
import type { JsonBytes } from '../../core/json-bytes.ts'
import type { AccountDataRow } from '../../store/accounts/account-data.ts'
import type { Requester } from '../accounts/requester.ts'
import type { Cancellation } from '../cancellation.ts'
import type { PresenceState } from './presence.ts'
import type { SyncSources } from './sources.ts'
import { isNewer, type StreamPosition } from './token.ts'
import type { UserRoom } from './user-rooms.ts'

export interface SyncRequest {
  /** The token of the answer before; none asks for everything. */
  readonly since: string | undefined
  readonly filter: CompiledFilter
  readonly fullState: boolean
  readonly timeoutMs: number
  /** State after the timeline instead of before it, under the stable or the unstable key. */
  readonly stateAfter: 'state_after' | 'org.matrix.msc4222.state_after' | undefined
  readonly presence: PresenceState
  /** Aborted when the client has gone. */
  readonly signal: Cancellation
}

/** What lies between two positions for a user. */
export interface Span {
  readonly sources: SyncSources
  readonly by: Requester
  readonly since: StreamPosition | undefined
  readonly now: StreamPosition
}

/** One look at everything, between two positions. */
export interface Look extends Span {
  readonly request: SyncRequest
  readonly timeMs: number
}

/** A room with what is known to be new in it besides events. */
export interface RoomNews {
  readonly roomNid: number
  readonly membership: UserRoom
  readonly receipts: JsonObject | undefined
  readonly accountData: readonly AccountDataRow[]
}

/** A room's part of an answer. */
export interface Section {
  readonly roomId: string
  readonly json: JsonBytes
}

/** Whether a room's members came within a span: it was joined without them. */
export function wasFilledWithin({ sources, since, now }: Span, roomNid: number): boolean {
  const completeAt = sources.partialStateRooms.completeAt(roomNid)
  if (completeAt === undefined || since === undefined) return false
  return isNewer(completeAt, since.events) && !isNewer(completeAt, now.events)
}

/** Whether a room's members are not all there at the end of a span. */
export function hasPartialState({ sources, now }: Span, roomNid: number): boolean {
  const completeAt = sources.partialStateRooms.completeAt(roomNid)
  return completeAt === undefined
    ? sources.partialStateRooms.of(roomNid)?.lacksMembers === true
    : isNewer(completeAt, now.events)
}
