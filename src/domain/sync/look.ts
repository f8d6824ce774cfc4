import type { CompiledFilter } from '../../core/filter.ts'
import type { JsonObject } from '../../core/json.ts'
import type { JsonBytes } from '../../core/json-bytes.ts'
import type { AccountDataRow } from '../../store/accounts/account-data.ts'
import type { Requester } from '../accounts/requester.ts'
import type { Cancellation } from '../cancellation.ts'
import { MAX_WHOLE_ANSWER_BYTES } from '../limits.ts'
import type { Ignored } from '../rooms/read/ignored-users.ts'
import type { PresenceState } from './presence.ts'
import type { SyncSources } from './sources.ts'
import { isNewer, type StreamPosition } from './token.ts'
import type { UserRoom } from './user-rooms.ts'

export interface SyncRequest {
  /** The token of the previous answer. Without it, everything is sent. */
  readonly since: string | undefined
  readonly filter: CompiledFilter
  readonly fullState: boolean
  readonly timeoutMs: number
  /** Gives the state after the timeline instead of before it, under the stable or the unstable key. */
  readonly stateAfter: 'state_after' | 'org.matrix.msc4222.state_after' | undefined
  readonly presence: PresenceState
  /** Set if what the client has from after this place was lost with a restore: it gets everything again, except for older keys. */
  readonly lostAfter?: StreamPosition | undefined
  /** Aborted when the client disconnects. */
  readonly signal: Cancellation
}

/** The range between two positions, for one user. */
export interface Span {
  readonly sources: SyncSources
  readonly by: Requester
  readonly since: StreamPosition | undefined
  readonly now: StreamPosition
}

/** One pass over everything between two positions. */
export interface Look extends Span {
  readonly request: SyncRequest
  readonly timeMs: number
  /** Whom the user ignores. */
  readonly ignored: Ignored | undefined
}

/** A room and its news other than events. */
export interface RoomNews {
  readonly roomNid: number
  readonly membership: UserRoom
  readonly receipts: JsonObject | undefined
  readonly accountData: readonly AccountDataRow[]
}

/** A room's part of the answer. */
export interface Section {
  readonly roomId: string
  /** About how many bytes it writes, where that is known. */
  readonly bytes?: number
  /** Whether it begins with the key, which is the room's id. */
  readonly hasKey?: boolean
  /** Writes it to the answer. Everything that it needs was read. */
  write(out: JsonBytes): void
}

/** Bytes of an answer beside its rooms, generously. */
const REST_BYTES = 32 * 1024

/** About how many bytes an answer with these rooms will have; 0 for one that is too large to be sent as a whole. */
export function expectedBytes(rooms: readonly Section[]): number {
  let bytes = REST_BYTES
  for (const section of rooms) bytes += section.bytes ?? 0
  return bytes <= MAX_WHOLE_ANSWER_BYTES ? bytes : 0
}

/** Whether a resync of the room completed within a span. */
export function wasResyncedWithin({ sources, since, now }: Span, roomNid: number): boolean {
  const completeAt = sources.partialStateRooms.completeAt(roomNid)
  if (completeAt === undefined || since === undefined) return false
  return isNewer(completeAt, since.events) && !isNewer(completeAt, now.events)
}

/** Whether a room still has partial state at the end of a span. */
export function hasPartialState({ sources, now }: Span, roomNid: number): boolean {
  const completeAt = sources.partialStateRooms.completeAt(roomNid)
  return completeAt === undefined
    ? sources.partialStateRooms.of(roomNid)?.lacksMembers === true
    : isNewer(completeAt, now.events)
}

/** Whether somebody began to type in a room, or ended, after a position. */
export function typesAnew({ sources, since }: Pick<Look, 'sources' | 'since'>, roomNid: number): boolean {
  const typing = sources.typing(roomNid)
  return typing !== undefined && since !== undefined && typing.position > since.ephemeral
}
