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

/** An index that follows the events in spare time, as operators see it. */
export interface PausableIndex {
  /** Begins anew with all that there is. @throws ProtocolError `M_FORBIDDEN` if the index is switched off */
  rebuild(): Promise<void>
  /** Stops following, or goes on where it stopped. A restart goes on too. */
  setPaused(isPaused: boolean): void
  /** Whether it is reading just now. */
  isBusy(): boolean
}

/** What operators do with the search index. */
export interface SearchDesk extends PausableIndex {
  /** @throws as `rebuild` */
  progress(): Promise<SearchProgress>
}

/** News of commits for the search index and the user directory: hints, since everything can be read from the database. */
export interface SearchListener {
  /** Called right after a commit. @param edited events of which an edit was redacted */
  committed(fresh: readonly RoomEvent[], redacted: readonly RoomEvent[], edited: readonly EventId[]): void
  /** Events were committed without a call of `committed`. */
  missed(): void
}

/** Made before rooms. The index and the directory are made after them, and subscribe. */
export interface SearchSignals extends SearchListener {
  subscribe(listener: SearchListener): void
}

export function createSearchSignals(): SearchSignals {
  const listeners: SearchListener[] = []
  return {
    committed(fresh, redacted, edited) {
      for (const listener of listeners) listener.committed(fresh, redacted, edited)
    },
    missed() {
      for (const listener of listeners) listener.missed()
    },
    subscribe: (one) => void listeners.push(one),
  }
}
