import { setTimeout as pause } from 'node:timers/promises'
import type { Logger } from 'pino'
import { createKeyedQueue } from '../../core/keyed-queue.ts'
import { getAllPushers, getPushersOf, type PusherRow } from '../../store/accounts/pushers.ts'
import type { Reader } from '../../store/db/db.ts'
import type { PushedUser } from '../push/rules.ts'
import type { PushTarget } from './push-target.ts'

/** A user with pushers. */
export interface PushUser extends PushedUser {
  /** By the number of the pusher. */
  readonly queues: Map<number, PushTarget>
}

/** The users with enabled pushers, and their queues. */
export interface PushUsers {
  readonly users: ReadonlyMap<number, PushUser>
  /** What the badge of a user shows may have changed. @param hasRead whether the user has read something, not only lost it */
  countsChanged(userNid: number, hasRead: boolean): void
  /** The pushers of a user were set or removed. Nothing is sent to them until they are read again. */
  changed(userNid: number): void
  /** A pusher is gone. */
  remove(queue: PushTarget): void
  /** Reads all pushers. Gives their rows. Nothing is sent to them before `wake`. */
  load(): Promise<readonly PusherRow[]>
  /** All send what they have. Before that, it must be known how far the stream was evaluated, or they would read nothing of what they missed. */
  wake(): void
  close(): void
}

const PAGE = 1_000
const PAUSE_AFTER_FAILURE_MS = 1_000

export function createPushUsers(parts: {
  readonly db: Reader
  readonly log: Logger
  /** Makes the queue of a pusher. @param lags whether it must read the stream after its position */
  open(row: PusherRow, lags: boolean): PushTarget
  /** Everything up to this position was evaluated. */
  evaluated(): number
  /** A user got their first pusher, or lost their last one. */
  usersChanged(): void
}): PushUsers {
  const { db, log, open, evaluated, usersChanged } = parts
  const users = new Map<number, PushUser>()
  const reloads = createKeyedQueue<number>()
  const closing = new AbortController()

  function add(row: PusherRow, lags: boolean): PushTarget {
    let one = users.get(row.user_nid)
    if (!one) {
      one = { userNid: row.user_nid, userId: row.user_id, queues: new Map() }
      users.set(row.user_nid, one)
      usersChanged()
    }
    const queue = open(row, lags)
    one.queues.set(row.pusher_nid, queue)
    return queue
  }

  function remove(queue: PushTarget): void {
    const { user_nid, pusher_nid } = queue.row
    const one = users.get(user_nid)
    queue.end()
    one?.queues.delete(pusher_nid)
    if (one?.queues.size !== 0) return
    users.delete(user_nid)
    usersChanged()
  }

  async function reload(userNid: number): Promise<void> {
    const rows = (await getPushersOf(db, userNid)).filter(isSent)
    const before = new Map(users.get(userNid)?.queues)
    for (const row of rows) {
      const queue = before.get(row.pusher_nid)
      before.delete(row.pusher_nid)
      // What was evaluated since it was set must be read: then, its queue was not there.
      const isOther = queue !== undefined && queue.row.kind !== row.kind
      if (isOther) remove(queue)
      if (!queue || isOther) add(row, row.lags || row.position < evaluated()).wake()
      else {
        queue.renew(row)
        queue.wake()
      }
    }
    for (const queue of before.values()) remove(queue)
  }

  async function reloadUntilDone(userNid: number): Promise<void> {
    while (!closing.signal.aborted) {
      try {
        return await reload(userNid)
      } catch (err) {
        log.warn({ err }, 'the pushers of a user could not be read; it will be tried again')
        await pause(PAUSE_AFTER_FAILURE_MS, undefined, { signal: closing.signal, ref: false }).catch(() => {})
      }
    }
  }

  return {
    users,
    remove,
    countsChanged(userNid, hasRead) {
      for (const queue of users.get(userNid)?.queues.values() ?? []) {
        queue.badgeChanged(hasRead)
        queue.wake()
      }
    },
    changed(userNid) {
      for (const queue of users.get(userNid)?.queues.values() ?? []) queue.isPaused = true
      void reloads.run(userNid, () => reloadUntilDone(userNid))
    },
    async load() {
      const found: PusherRow[] = []
      for (;;) {
        const page = await getAllPushers(db, found.at(-1)?.pusher_nid ?? 0, PAGE)
        found.push(...page)
        if (page.length < PAGE) break
      }
      const sent = found.filter(isSent)
      for (const row of sent) add(row, row.lags)
      return sent
    },
    wake() {
      for (const { queues } of users.values()) for (const queue of queues.values()) queue.wake()
    },
    close: () => closing.abort(),
  }
}

const isSent = ({ is_enabled }: PusherRow): boolean => is_enabled
