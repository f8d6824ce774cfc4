import type { VerifyKey } from '../../../core/event/signers.ts'
import type { EventId, RoomId, ServerName } from '../../../core/ids.ts'
import type { ReadJson } from '../../../core/json.ts'
import type { Integer } from '../../../core/large-integers.ts'

/** A room's state right before one of its events and the auth chain of that state, as another server tells it. */
export interface StateIds {
  readonly state: readonly EventId[]
  readonly authChain: readonly EventId[]
}

/**
 * What the room engine asks of other servers. Answers may be wrong, late, doubled or missing, and nothing in them is believed
 * without a check. `undefined`, or nothing in a list, when there is no answer.
 */
export interface FederationQueries {
  /**
   * Events between some that we have and some that we know of, of all that lie between at most `limit`, none less deep than `minDepth`
   * (server-server API, `POST get_missing_events`).
   */
  missingEvents(
    of: ServerName,
    roomId: RoomId,
    between: {
      readonly earliest: readonly EventId[]
      readonly latest: readonly EventId[]
      readonly limit: number
      readonly minDepth: Integer
    },
  ): Promise<readonly ReadJson[]>
  /** The state before an event (`GET state_ids`). */
  stateIds(of: ServerName, roomId: RoomId, eventId: EventId): Promise<StateIds | undefined>
  /** Single events, as far as they can be had (`GET event`). */
  events(of: ServerName, roomId: RoomId, eventIds: readonly EventId[]): Promise<readonly ReadJson[]>
}

/** The signing keys of other servers. */
export interface KeyRing {
  /** The keys that are known under these ids, fetched when need be. */
  keysOf(server: ServerName, keyIds: readonly string[]): Promise<readonly VerifyKey[]>
}

/** For a server that knows no other: nobody answers. */
export const NOBODY: FederationQueries & KeyRing = {
  missingEvents: async () => [],
  stateIds: async () => undefined,
  events: async () => [],
  keysOf: async () => [],
}
