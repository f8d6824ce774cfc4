import { SetsByKey } from '../../core/sets-by-key.ts'
import type { Requester } from '../accounts/requester.ts'
import type { Sessions } from '../accounts/sessions.ts'
import { MAX_HELD_SYNCS_PER_DEVICE, MAX_HELD_SYNCS_PER_USER } from '../limits.ts'

/** What held syncs need of the sessions they belong to. */
export type WatchedSessions = Pick<Sessions, 'onForget' | 'isRemembered' | 'endOf' | 'verify'>

/** The syncs that clients hold open. When a device or a user has too many, the oldest ends. When a session ends, its syncs end. */
export interface HeldSyncs {
  hold(by: Requester, what?: 'waiting' | 'sending'): HeldSync
  /** When the session of a sync expires. */
  endOf(by: Requester): number
  /** How many syncs were ended since the start, because there were too many, or with their session. */
  readonly ended: { readonly displaced: number; readonly withSession: number }
}

export interface HeldSync {
  /**
   * Set once the sync must end without news. The promise resolves if it should end like one without news, and rejects with the error that a
   * request in its session would get now.
   */
  readonly over: Promise<void> | undefined
  /** The listener is called when the sync must end. */
  onOver(listener: () => void): void
  /** Has the session checked, because it may have expired. */
  end(): void
  release(): void
}

/** @param sessions without them, no sync ends with its session */
export function createHeldSyncs(sessions?: WatchedSessions): HeldSyncs {
  /** The held syncs of each user, the oldest first, without those that are over. */
  const byUser = new SetsByKey<number, Held>()
  const ended = { displaced: 0, withSession: 0 }

  class Held implements HeldSync {
    readonly by: Requester
    over: Promise<void> | undefined
    #listener: () => void = () => {}

    /** Whether it waits. An answer that is being sent does not count here, because its bytes are counted. */
    readonly isWaiting: boolean

    constructor(by: Requester, isWaiting: boolean) {
      this.by = by
      this.isWaiting = isWaiting
    }

    onOver(listener: () => void): void {
      this.#listener = listener
      if (this.over) listener()
    }

    /** With the service's own token no session ends. Its next request hears what the service may still do. */
    end(): void {
      if (this.over) return
      ended.withSession += 1
      this.#end(sessions && !this.by.appservice ? sessions.verify(this.by) : Promise.resolve())
    }

    displace(): void {
      ended.displaced += 1
      this.#end(Promise.resolve())
    }

    #end(over: Promise<void>): void {
      this.over = over
      // The holder hears of a failure. Until it awaits the promise, the failure must not count as unhandled.
      over.catch(() => {})
      this.release()
      this.#listener()
    }

    release(): void {
      byUser.delete(this.by.userNid, this)
    }
  }

  function makeRoom({ userNid, deviceId }: Requester): void {
    if (!byUser.has(userNid)) return
    const waiting = byUser.of(userNid).filter(({ isWaiting }) => isWaiting)
    const ofDevice = waiting.filter(({ by }) => by.deviceId === deviceId)
    for (const one of ofDevice.slice(0, Math.max(0, ofDevice.length + 1 - MAX_HELD_SYNCS_PER_DEVICE))) one.displace()
    const others = waiting.filter(({ over }) => !over)
    for (const one of others.slice(0, Math.max(0, others.length + 1 - MAX_HELD_SYNCS_PER_USER))) one.displace()
  }

  sessions?.onForget((userNid, deviceId) => {
    for (const held of byUser.of(userNid)) {
      if (deviceId === undefined || held.by.deviceId === deviceId) held.end()
    }
  })

  return {
    ended,
    endOf: (by) => sessions?.endOf(by) ?? Number.POSITIVE_INFINITY,
    hold(by, what = 'waiting') {
      if (what === 'waiting') makeRoom(by)
      const held = new Held(by, what === 'waiting')
      byUser.add(by.userNid, held)
      // The session may have ended since the request began.
      if (sessions?.isRemembered(by) === false && !by.appservice) sessions.verify(by).catch(() => held.end())
      return held
    },
  }
}
