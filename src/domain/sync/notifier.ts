import { SetsByKey } from '../../core/sets-by-key.ts'
import type { Cancellation } from '../cancellation.ts'
import { createHeldSyncs, type HeldSyncs, type WatchedSessions } from './held-syncs.ts'
import { createWaking, type Wake } from './waking.ts'

/**
 * Wakes long polls. A wake-up is a hint: a sync that wakes looks for news and may find none. All wake-ups of a tick go out together, so
 * that a burst of events wakes a client once; many go out in slices.
 */
export interface Notifier {
  /** Something happened in a room that its members may see. */
  wakeRoom(roomNid: number): void
  /** Something happened that only these users see. */
  wakeUsers(userNids: Iterable<number>): void
  /** A stream moved, whomever that concerns. Nobody wakes, but followers hear of it. */
  moved(): void
  /** What every answer to this user repeats has changed, or whether the user gets any. Nobody wakes, but followers hear of it. */
  changed(userNid: number): void
  /** A connection of sliding sync has a newer request. Followers hear of it, but for the one that brought it. */
  began(connection: string, broughtBy?: WakeFollower): void
  /** Commits were missed: there may be news for anybody. Followers hear of it. */
  missed(): void
  /** Has a follower hear of everything that wakes syncs, also while none waits here. @returns what ends that */
  follow(follower: WakeFollower): () => void
  /** Resolves at the first wake-up of the user or of one of the rooms, after `timeoutMs`, or when `signal` aborts. */
  wait(interest: Interest, timeoutMs: number, signal: Cancellation): Wait
  /** Ends all waits, and every later one at once, because the server is stopping. */
  drain(): void
  readonly isDraining: boolean
  /** The waiting syncs, by session. */
  readonly held: HeldSyncs
  /** How many wait now. */
  waiting(): number
}

/** Hears of wake-ups as they happen, in the tick of what they are for. */
export interface WakeFollower {
  room(roomNid: number): void
  user(userNid: number): void
  /** A connection of sliding sync has a newer request, elsewhere than at the follower. */
  began(connection: string): void
  /** A stream moved, whether or not that wakes anybody. */
  moved(): void
  /** There may be news for anybody, or the server is stopping. */
  missed(): void
}

export interface Interest {
  readonly userNid: number
  readonly roomNids: readonly number[]
}

export interface Wait {
  readonly woken: Promise<void>
  cancel(): void
}

/** @param sessions waiting syncs end with their session; without sessions none does */
export function createNotifier(sessions?: WatchedSessions): Notifier {
  const byRoom = new SetsByKey<number, Wake>()
  const byUser = new SetsByKey<number, Wake>()
  const waiting = new Set<Wake>()
  const waking = createWaking()
  const dueRooms = new Set<number>()
  const dueUsers = new Set<number>()
  const followers = new Set<WakeFollower>()
  let scheduled = false
  let draining = false

  function schedule(): void {
    if (scheduled) return
    scheduled = true
    setImmediate(() => {
      scheduled = false
      // A sync that waits again while these wake is not included.
      waking.add([...dueUsers].flatMap((userNid) => byUser.of(userNid)))
      for (const roomNid of dueRooms) waking.add(byRoom.of(roomNid))
      dueUsers.clear()
      dueRooms.clear()
      waking.run()
    })
  }

  function wait({ userNid, roomNids }: Interest, timeoutMs: number, signal: Cancellation): Wait {
    let resolve: () => void
    const woken = new Promise<void>((settle) => {
      resolve = settle
    })
    const wake = (): void => {
      if (!waiting.delete(wake)) return
      clearTimeout(timer)
      signal.removeEventListener('abort', wake)
      byUser.delete(userNid, wake)
      for (const room of roomNids) byRoom.delete(room, wake)
      resolve()
    }
    const timer = setTimeout(wake, draining || signal.aborted ? 0 : timeoutMs)
    signal.addEventListener('abort', wake)
    waiting.add(wake)
    byUser.add(userNid, wake)
    for (const room of roomNids) byRoom.add(room, wake)
    return { woken, cancel: wake }
  }

  function missed(): void {
    for (const follower of [...followers]) follower.missed()
  }

  return {
    held: createHeldSyncs(sessions),
    wait,
    wakeRoom(roomNid) {
      for (const follower of followers) follower.room(roomNid)
      if (!byRoom.has(roomNid)) return
      dueRooms.add(roomNid)
      schedule()
    },
    wakeUsers(userNids) {
      for (const userNid of userNids) {
        for (const follower of followers) follower.user(userNid)
        if (byUser.has(userNid)) dueUsers.add(userNid)
      }
      if (dueUsers.size > 0) schedule()
    },
    moved() {
      for (const follower of followers) follower.moved()
    },
    changed(userNid) {
      for (const follower of followers) follower.user(userNid)
    },
    began(connection, broughtBy) {
      for (const follower of followers) if (follower !== broughtBy) follower.began(connection)
    },
    missed,
    follow(follower) {
      followers.add(follower)
      return () => void followers.delete(follower)
    },
    drain() {
      draining = true
      waking.add(waiting)
      waking.run()
      missed()
    },
    get isDraining() {
      return draining
    },
    waiting: () => waiting.size,
  }
}
