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

/** What commits tell the search index and the user directory: hints, since everything can be read from the database. */
export interface SearchHearer {
  /** Called right after a commit. @param edited events of which an edit was redacted */
  committed(fresh: readonly RoomEvent[], redacted: readonly RoomEvent[], edited: readonly EventId[]): void
  /** Events were committed without a call of `committed`. */
  missed(): void
}

/** Made before rooms, and heard by both, which are made after them. */
export interface SearchSignals extends SearchHearer, SearchDesk {
  hear(hearer: SearchHearer): void
  /** The index takes its place. */
  serve(desk: SearchDesk): void
}

export function createSearchSignals(): SearchSignals {
  const hearers: SearchHearer[] = []
  let desk: SearchDesk | undefined

  function index(): SearchDesk {
    if (desk === undefined) throw new ProtocolError('M_FORBIDDEN', 'Searching is switched off: see search.enabled.')
    return desk
  }

  return {
    committed(fresh, redacted, edited) {
      for (const hearer of hearers) hearer.committed(fresh, redacted, edited)
    },
    missed() {
      for (const hearer of hearers) hearer.missed()
    },
    rebuild: async () => index().rebuild(),
    progress: async () => index().progress(),
    hear: (one) => void hearers.push(one),
    serve(one) {
      desk = one
    },
  }
}
