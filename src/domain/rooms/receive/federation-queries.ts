import type { VerifyKey } from '../../../core/event/signers.ts'
import type { EventId, RoomId, ServerName } from '../../../core/ids.ts'
import type { ReadJson } from '../../../core/json.ts'
import type { Integer } from '../../../core/large-integers.ts'

/** A room's state right before one of its events and the auth chain of that state, as another server claims them. */
export interface StateIds {
  readonly state: readonly EventId[]
  readonly authChain: readonly EventId[]
}

/**
 * What the room engine asks other servers. Answers may be wrong, late, repeated or missing; none is believed without a check. Without an
 * answer, a query gives `undefined` or an empty list.
 */
export interface FederationQueries {
  /**
   * The events between those that we have and those that we know of: at most `limit`, none of lower depth than `minDepth` (server-server
   * API, `POST get_missing_events`).
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
  /** Single events, as many as the server gives (`GET event`). */
  events(of: ServerName, roomId: RoomId, eventIds: readonly EventId[]): Promise<readonly ReadJson[]>
}

/** The signing keys of other servers. */
export interface KeyRing {
  /** The keys with these ids, fetched if necessary. */
  keysOf(server: ServerName, keyIds: readonly string[]): Promise<readonly VerifyKey[]>
}

/** For a server without federation: no query has an answer. */
export const NOBODY: FederationQueries & KeyRing = {
  missingEvents: async () => [],
  stateIds: async () => undefined,
  events: async () => [],
  keysOf: async () => [],
}
