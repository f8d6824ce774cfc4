import type { EventId } from '../../core/ids.ts'
import type { RoomEvent } from '../rooms/room/room-event.ts'

/** What commits tell the search index: hints, since everything can be read from the database. */
export interface SearchHearer {
  /** Called right after a commit. @param edited events of which an edit was redacted */
  committed(fresh: readonly RoomEvent[], redacted: readonly RoomEvent[], edited: readonly EventId[]): void
  /** Events were committed without a call of `committed`. */
  missed(): void
}

/** Made before rooms, and heard by the index, which is made after them. */
export interface SearchSignals extends SearchHearer {
  hear(hearer: SearchHearer): void
}

export function createSearchSignals(): SearchSignals {
  let hearer: SearchHearer | undefined
  return {
    committed: (fresh, redacted, edited) => hearer?.committed(fresh, redacted, edited),
    missed: () => hearer?.missed(),
    hear(one) {
      hearer = one
    },
  }
}
