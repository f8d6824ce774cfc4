import type { Requester } from '../accounts/requester.ts'
import type { Sessions } from '../accounts/sessions.ts'
import { MAX_HELD_SYNCS_PER_DEVICE, MAX_HELD_SYNCS_PER_USER } from '../limits.ts'

/** What is asked of sessions that syncs end with. */
export type WatchedSessions = Pick<Sessions, 'onForget' | 'isRemembered' | 'endOf' | 'verify'>

/**
 * The syncs that clients hold open. One that is too many for its device or its user ends, the oldest first; and one whose session
 * ends, ends with it.
 */
export interface HeldSyncs {
  hold(by: Requester, what?: 'waiting' | 'sending'): HeldSync
  /** When the session of a sync ends by itself. */
  endOf(by: Requester): number
  /** How many were ended since the start, because there were too many, or with their session. */
  readonly ended: { readonly displaced: number; readonly withSession: number }
}

export interface HeldSync {
  /**
   * Set once it has to end, with nothing that is new: the promise resolves where it ends as if nothing had happened, and rejects
   * with what a request in its session would get now.
   */
  readonly over: Promise<void> | undefined
  /** Called when it has to end. */
  onOver(listener: () => void): void
  /** Has its session looked at: it may have ended by itself. */
  end(): void
  release(): void
}

/** @param sessions where there are none, no sync ends with its session */
export function createHeldSyncs(sessions?: WatchedSessions): HeldSyncs {
  /** Of each user in the order of their coming. Those that are over are not among them. */
  const byUser = new Map<number, Set<Held>>()
  const ended = { displaced: 0, withSession: 0 }

  class Held implements HeldSync {
    readonly by: Requester
    over: Promise<void> | undefined
    #listener: () => void = () => {}

    /** What is being sent is not too many: its bytes are counted. */
    readonly isWaiting: boolean

    constructor(by: Requester, isWaiting: boolean) {
      this.by = by
      this.isWaiting = isWaiting
    }

    onOver(listener: () => void): void {
      this.#listener = listener
      if (this.over) listener()
    }

    /** With the service's own token nothing has ended: what it may still do is for its next request to hear. */
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
      // Whoever holds it hears of the failure; until then nobody listens.
      over.catch(() => {})
      this.release()
      this.#listener()
    }

    release(): void {
      const held = byUser.get(this.by.userNid)
      if (held?.delete(this) && held.size === 0) byUser.delete(this.by.userNid)
    }
  }

  function makeRoom(held: ReadonlySet<Held>, { deviceId }: Requester): void {
    const waiting = [...held].filter(({ isWaiting }) => isWaiting)
    const ofDevice = waiting.filter(({ by }) => by.deviceId === deviceId)
    for (const one of ofDevice.slice(0, Math.max(0, ofDevice.length + 1 - MAX_HELD_SYNCS_PER_DEVICE))) one.displace()
    const others = waiting.filter(({ over }) => !over)
    for (const one of others.slice(0, Math.max(0, others.length + 1 - MAX_HELD_SYNCS_PER_USER))) one.displace()
  }

  sessions?.onForget((userNid, deviceId) => {
    for (const held of [...(byUser.get(userNid) ?? [])]) {
      if (deviceId === undefined || held.by.deviceId === deviceId) held.end()
    }
  })

  return {
    ended,
    endOf: (by) => sessions?.endOf(by) ?? Number.POSITIVE_INFINITY,
    hold(by, what = 'waiting') {
      const before = byUser.get(by.userNid)
      if (before && what === 'waiting') makeRoom(before, by)
      const held = new Held(by, what === 'waiting')
      const others = byUser.get(by.userNid)
      if (others) others.add(held)
      else byUser.set(by.userNid, new Set([held]))
      // The session may have ended since the request began.
      if (sessions?.isRemembered(by) === false && !by.appservice) sessions.verify(by).catch(() => held.end())
      return held
    },
  }
}
