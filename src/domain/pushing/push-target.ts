import type { PusherProgress, PusherRow } from '../../store/accounts/pushers.ts'
import type { Notice } from './notice.ts'

/** What one pusher has still to send. */
export interface PushTarget {
  readonly row: PusherRow
  /** Set while the user's pushers are read again: nothing is sent meanwhile. */
  isPaused: boolean
  /**
   * Takes the next notice of the stream, and sends it when it is its turn.
   * @returns whether another of its room waited already, in whose place it waits now
   */
  offer(notice: Notice): boolean
  /** The badge may have changed. @param hasRead whether the user has read something, not only lost it */
  badgeChanged(hasRead: boolean): void
  /** Sends what is due, when it is its turn. */
  wake(): void
  /** The user set the pusher again: its address may be another. */
  renew(row: PusherRow): void
  /** Nothing is sent any more. */
  end(): void
  /** Everything up to this position was sent; undefined if everything was. */
  readonly sentUpTo: number | undefined
  /** Whether its position is to be saved in a row of its own. */
  readonly isBehind: boolean
  /** When the first notice that waits was found; undefined if none waits. */
  readonly waitsSince: number | undefined
  readonly progress: PusherProgress
}
