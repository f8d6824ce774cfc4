import { ProtocolError } from '../../core/errors.ts'
import type { EventId } from '../../core/ids.ts'
import type { RoomEvent } from '../rooms/room/room-event.ts'

/** How far the search index is. */
export interface SearchProgress {
  /** The number of the newest event that was indexed, and of the newest that there is. */
  readonly indexed: number
  readonly newest: number
  /** Whether nothing waits. */
  readonly is_done: boolean
}

/** What operators do with the search index. */
export interface SearchDesk {
  /** Empties the index, and begins to index all events anew. @throws ProtocolError `M_FORBIDDEN` if searching is switched off */
  rebuild(): Promise<void>
  /** @throws as `rebuild` */
  progress(): Promise<SearchProgress>
}

/** What commits tell the search index: hints, since everything can be read from the database. */
export interface SearchHearer {
  /** Called right after a commit. @param edited events of which an edit was redacted */
  committed(fresh: readonly RoomEvent[], redacted: readonly RoomEvent[], edited: readonly EventId[]): void
  /** Events were committed without a call of `committed`. */
  missed(): void
}

/** Made before rooms, and heard by the index, which is made after them. */
export interface SearchSignals extends SearchHearer, SearchDesk {
  hear(hearer: SearchHearer & SearchDesk): void
}

export function createSearchSignals(): SearchSignals {
  let hearer: (SearchHearer & SearchDesk) | undefined

  function index(): SearchDesk {
    if (hearer === undefined) throw new ProtocolError('M_FORBIDDEN', 'Searching is switched off: see search.enabled.')
    return hearer
  }

  return {
    committed: (fresh, redacted, edited) => hearer?.committed(fresh, redacted, edited),
    missed: () => hearer?.missed(),
    rebuild: async () => index().rebuild(),
    progress: async () => index().progress(),
    hear(one) {
      hearer = one
    },
  }
}
