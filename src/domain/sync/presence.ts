import { createCache } from '../../core/cache.ts'
import type { UserId } from '../../core/ids.ts'
import type { JsonObject } from '../../core/json.ts'
import type { Clock } from '../clock.ts'
import { MAX_STRANGERS_PRESENT } from '../limits.ts'

export type PresenceState = 'online' | 'unavailable' | 'offline'

export interface PresenceOf {
  readonly userId: UserId
  readonly state: PresenceState
  readonly statusMessage: string | undefined
  /** Milliseconds; the user's last activity. */
  readonly activeAt: number
  /** The rooms in which others see a user of another server; undefined for our own. */
  readonly roomNids: ReadonlySet<number> | undefined
}

/** Presence of users. Kept in memory: after a restart every user is offline until there is news of them. */
export interface Presence {
  of(userId: UserId): PresenceOf | undefined
  ofNumber(userNid: number): PresenceOf | undefined
  /** A user sets their presence. */
  set(user: { userNid: number; userId: UserId }, state: PresenceState, statusMessage: string | undefined): void
  /** A user's client syncs, which keeps their presence unless `set_presence` changes it. */
  seen(user: { userNid: number; userId: UserId }, state: PresenceState): void
  /** Another server reports the presence of one of its users. */
  heard(
    user: { userNid: number; userId: UserId; roomNids: ReadonlySet<number> },
    is: Pick<PresenceOf, 'state' | 'statusMessage' | 'activeAt'>,
  ): void
  /** The same for a user who shares no room with ours yet: a server may report it while one of our users is still joining its room. */
  heardOfStranger(userId: UserId, is: Pick<PresenceOf, 'state' | 'statusMessage' | 'activeAt'>): void
  /** A user of another server has joined a room, or left it. */
  moved(user: { userNid: number; userId: UserId }, roomNid: number, isJoined: boolean): void
  /** The users whose presence changed after a position, newest last. */
  changedSince(position: number): readonly [userNid: number, presence: PresenceOf][]
  position(): number
  close(): void
}

interface Entry extends PresenceOf {
  readonly position: number
  activeAt: number
  /** The user is offline after this time, unless there is news. */
  until: number
  readonly sentAt: number
}

/** A user is offline after this long without a sync. */
const GONE_AFTER_MS = 90_000
/** The same for users of other servers, which repeat their reports about as often as we do. */
const REMOTE_GONE_AFTER_MS = 30 * 60_000
const TELL_EVERY_MS = 25 * 60_000
const SWEEP_EVERY_MS = 15_000
/** A user counts as currently active for this long. */
const CURRENTLY_MS = 60_000
const MAX_USERS = 100_000
const FEWEST_CHANGES = 100

export interface PresenceParts {
  readonly clock: Clock
  readonly enabled: boolean
  /** The next position in the ephemeral stream. */
  nextPosition(): number
  changed(userNid: number, presence: PresenceOf): void
  /** Called with the presence of our users, for other servers. */
  toServers(userNid: number, presence: PresenceOf): void
}

export function createPresence({ clock, enabled, nextPosition, changed, toServers }: PresenceParts): Presence {
  /** In the order of their last change. */
  const users = new Map<number, Entry>()
  /** The changes, oldest first: whoever looks for the newest need not go through all users. A later change of a user makes an earlier one void. */
  let changes: { readonly userNid: number; readonly position: number }[] = []
  const nids = new Map<UserId, number>()
  const strangers = createCache<UserId, Omit<Entry, 'position' | 'sentAt' | 'roomNids'>>(MAX_STRANGERS_PRESENT)
  let last = 0

  function put(userNid: number, given: Omit<Entry, 'position' | 'sentAt'>): void {
    const entry = { ...given, sentAt: clock.now() }
    last = nextPosition()
    users.delete(userNid)
    users.set(userNid, { ...entry, position: last })
    changes.push({ userNid, position: last })
    if (changes.length > 2 * users.size + FEWEST_CHANGES) forgetVoid()
    nids.set(entry.userId, userNid)
    if (users.size > MAX_USERS) forgetOldest()
    changed(userNid, entry)
    if (entry.roomNids === undefined) toServers(userNid, entry)
  }

  function forgetOldest(): void {
    const [userNid, { userId }] = users.entries().next().value!
    users.delete(userNid)
    nids.delete(userId)
  }

  function forgetVoid(): void {
    changes = [...users].map(([userNid, { position }]) => ({ userNid, position }))
  }

  function sweep(): void {
    const now = clock.now()
    for (const [userNid, entry] of [...users]) {
      if (entry.state === 'offline') continue
      if (entry.until < now) put(userNid, { ...entry, state: 'offline' })
      else if (entry.roomNids === undefined && entry.sentAt < now - TELL_EVERY_MS) {
        users.set(userNid, { ...entry, sentAt: now })
        toServers(userNid, entry)
      }
    }
  }

  const timer = setInterval(sweep, SWEEP_EVERY_MS).unref()

  return {
    of: (userId) => users.get(nids.get(userId) ?? 0),
    ofNumber: (userNid) => users.get(userNid),
    position: () => last,
    close: () => clearInterval(timer),
    set({ userNid, userId }, state, statusMessage) {
      if (!enabled) return
      const now = clock.now()
      put(userNid, { userId, state, statusMessage, activeAt: now, until: now + GONE_AFTER_MS, roomNids: undefined })
    },
    seen({ userNid, userId }, state) {
      if (!enabled) return
      const known = users.get(userNid)
      const now = clock.now()
      const wanted = state === 'offline' ? (known?.state ?? 'offline') : state
      if (known && known.state === wanted) {
        known.until = now + GONE_AFTER_MS
        if (state === 'online') known.activeAt = now
      } else if (wanted !== 'offline') {
        const about = { userId, state: wanted, statusMessage: known?.statusMessage, roomNids: undefined }
        put(userNid, { ...about, activeAt: now, until: now + GONE_AFTER_MS })
      }
    },
    heard({ userNid, ...user }, is) {
      if (enabled) put(userNid, { ...user, ...is, until: clock.now() + REMOTE_GONE_AFTER_MS })
    },
    heardOfStranger(userId, is) {
      if (enabled) strangers.set(userId, { userId, ...is, until: clock.now() + REMOTE_GONE_AFTER_MS })
    },
    moved({ userNid, userId }, roomNid, isJoined) {
      const heardOf = isJoined && strangers.size > 0 ? strangers.get(userId) : undefined
      if (heardOf) {
        strangers.delete(userId)
        if (heardOf.until > clock.now()) return put(userNid, { ...heardOf, roomNids: new Set([roomNid]) })
      }
      const known = users.get(userNid)
      if (!known?.roomNids || known.roomNids.has(roomNid) === isJoined) return
      const roomNids = new Set(known.roomNids)
      if (isJoined) roomNids.add(roomNid)
      else roomNids.delete(roomNid)
      users.set(userNid, { ...known, roomNids })
    },
    changedSince(position) {
      const found: [number, Entry][] = []
      for (let place = changes.length - 1; place >= 0; place--) {
        const change = changes[place]!
        if (change.position <= position) break
        const entry = users.get(change.userNid)
        if (entry?.position === change.position) found.push([change.userNid, entry])
      }
      return found.reverse()
    },
  }
}

/** The content of `m.presence`. A user without news is offline. */
export function presenceContent(presence: PresenceOf | undefined, timeMs: number): JsonObject {
  if (!presence) return { presence: 'offline' }
  const { state, statusMessage, activeAt } = presence
  return {
    presence: state,
    last_active_ago: Math.max(0, timeMs - activeAt),
    currently_active: state === 'online' && timeMs - activeAt < CURRENTLY_MS,
    ...(statusMessage === undefined ? {} : { status_msg: statusMessage }),
  }
}
