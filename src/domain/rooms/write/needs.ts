import type { RoomEvent } from '../room/room-event.ts'

/** What must be had before events can be built: they are built again with it. */
export type Need = NeedsState | NeedsTargets | NeedsReaders | NeedsApproval

export function isNeed(error: unknown): error is Need {
  return [NeedsState, NeedsTargets, NeedsReaders, NeedsApproval].some((kind) => error instanceof kind)
}

/** A check needs state that must be loaded first. */
export class NeedsState extends Error {
  readonly nids: readonly number[]
  constructor(nids: readonly number[]) {
    super('state is not loaded')
    this.nids = nids
  }
}

/** A member whose event is allowed has no number yet. */
export class NeedsTargets extends Error {
  constructor() {
    super('a member has no number yet')
  }
}

/** The push rules or the names of members are not in memory. */
export class NeedsReaders extends Error {
  readonly load: () => Promise<void>
  constructor(load: () => Promise<void>) {
    super('push rules or names are not loaded')
    this.load = load
  }
}

/** The room's policy server has not signed the events. */
export class NeedsApproval extends Error {
  readonly events: readonly RoomEvent[]
  constructor(events: readonly RoomEvent[]) {
    super('events are not approved')
    this.events = events
  }
}
