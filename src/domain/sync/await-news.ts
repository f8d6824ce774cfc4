import type { Requester } from '../accounts/requester.ts'
import type { Cancellation } from '../cancellation.ts'
import type { Clock } from '../clock.ts'
import type { HeldSync } from './held-syncs.ts'
import type { Notifier, Wait } from './notifier.ts'
import type { RoomsOfUser, UserRooms } from './user-rooms.ts'

/** What a sync found when it looked for news. */
export interface Found {
  /** Whether there is no news for the client. */
  readonly isEmpty: boolean
}

/** How long a sync waits: until a time in milliseconds, or until its client is gone. */
export interface Patience {
  readonly deadline: number
  readonly signal: Cancellation
}

/**
 * Looks for news until there is some, or patience ends; then the last look may be empty. It listens before it looks, so that it misses
 * nothing in between. Undefined if the sync was ended.
 *
 * @throws if the session ended, the error that a request in it would get
 */
export type AwaitNews = <Answer extends Found>(
  by: Requester,
  patience: Patience,
  look: () => Answer | Promise<Answer>,
) => Promise<Answer | undefined>

export function createAwaitNews(parts: {
  readonly clock: Clock
  readonly notifier: Notifier
  readonly userRooms: Pick<UserRooms, 'of'>
}): AwaitNews {
  const { clock, notifier, userRooms } = parts

  /** Begins to listen for what the user may see. From now on, news wakes the sync. */
  function listen({ userNid }: Requester, { joined }: RoomsOfUser, signal: Cancellation, until: number): Wait {
    return notifier.wait({ userNid, roomNids: [...joined.keys()] }, until - clock.now(), signal)
  }

  function isDue({ deadline, signal }: Patience): boolean {
    return clock.now() >= deadline || signal.aborted || notifier.isDraining
  }

  return async (by, patience, look) => {
    const { deadline, signal } = patience
    const endsAt = notifier.held.endOf(by)
    let held: HeldSync | undefined
    let wait: Wait | undefined
    try {
      while (!held?.over) {
        const known = userRooms.of(by.userNid)
        const rooms = known instanceof Promise ? await known : known
        wait = listen(by, rooms, signal, Math.min(deadline, endsAt))
        const first = look()
        let answer = first instanceof Promise ? await first : first
        if (answer.isEmpty && !isDue(patience)) {
          held ??= notifier.held.hold(by)
          held.onOver(wait.cancel)
          await wait.woken
          if (clock.now() >= endsAt) held.end()
          if (held.over) break
          const second = look()
          answer = second instanceof Promise ? await second : second
        }
        wait.cancel()
        if (!held?.over && (!answer.isEmpty || isDue(patience))) return answer
      }
      await held.over
      return undefined
    } finally {
      wait?.cancel()
      held?.release()
    }
  }
}
