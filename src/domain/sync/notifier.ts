/**
 * Wakes long polls. A wake-up is a hint: whoever is woken looks for what is new and may find nothing.
 * All wake-ups of a tick are given at once, so that a burst of events wakes a client once.
 */
export interface Notifier {
  /** Something happened in a room that its members may see. */
  wakeRoom(roomNid: number): void
  /** Something happened that only these users see. */
  wakeUsers(userNids: Iterable<number>): void
  /** Resolves at the first wake-up of the user or of one of the rooms, after `timeoutMs`, or when `signal` aborts. */
  wait(interest: Interest, timeoutMs: number, signal: AbortSignal): Wait
  /** Ends all waits, and every later one at once: the server is stopping. */
  drain(): void
  readonly isDraining: boolean
  /** How many wait now. */
  waiting(): number
}

export interface Interest {
  readonly userNid: number
  readonly roomNids: Iterable<number>
}

export interface Wait {
  readonly woken: Promise<void>
  cancel(): void
}

type Wake = () => void

class Index {
  readonly #wakes = new Map<number, Set<Wake>>()

  add(key: number, wake: Wake): void {
    const set = this.#wakes.get(key)
    if (set) set.add(wake)
    else this.#wakes.set(key, new Set([wake]))
  }

  remove(key: number, wake: Wake): void {
    const set = this.#wakes.get(key)
    if (!set?.delete(wake) || set.size > 0) return
    this.#wakes.delete(key)
  }

  of(key: number): Iterable<Wake> {
    return this.#wakes.get(key) ?? []
  }
}

export function createNotifier(): Notifier {
  const byRoom = new Index()
  const byUser = new Index()
  const waiting = new Set<Wake>()
  let due = new Set<Wake>()
  let scheduled = false
  let draining = false

  function schedule(wakes: Iterable<Wake>): void {
    for (const wake of wakes) due.add(wake)
    if (scheduled || due.size === 0) return
    scheduled = true
    setImmediate(() => {
      scheduled = false
      const now = due
      due = new Set()
      for (const wake of now) wake()
    })
  }

  function wait({ userNid, roomNids }: Interest, timeoutMs: number, signal: AbortSignal): Wait {
    const rooms = [...roomNids]
    const { promise, resolve } = deferred()
    const wake = (): void => {
      clearTimeout(timer)
      signal.removeEventListener('abort', wake)
      waiting.delete(wake)
      byUser.remove(userNid, wake)
      for (const room of rooms) byRoom.remove(room, wake)
      resolve()
    }
    const timer = setTimeout(wake, draining || signal.aborted ? 0 : timeoutMs)
    signal.addEventListener('abort', wake)
    waiting.add(wake)
    byUser.add(userNid, wake)
    for (const room of rooms) byRoom.add(room, wake)
    return { woken: promise, cancel: wake }
  }

  return {
    wait,
    wakeRoom: (roomNid) => schedule(byRoom.of(roomNid)),
    wakeUsers(userNids) {
      for (const userNid of userNids) schedule(byUser.of(userNid))
    },
    drain() {
      draining = true
      schedule(waiting)
    },
    get isDraining() {
      return draining
    },
    waiting: () => waiting.size,
  }
}

function deferred(): { promise: Promise<void>; resolve: () => void } {
  let resolve: () => void = () => {}
  const promise = new Promise<void>((settle) => {
    resolve = settle
  })
  return { promise, resolve }
}
