import { ProtocolError } from '../../core/errors.ts'
import type { Filters } from '../accounts/filters.ts'
import type { Requester } from '../accounts/requester.ts'
import type { Sessions } from '../accounts/sessions.ts'
import type { Cancellation } from '../cancellation.ts'
import { MAX_LOOKED_BYTES, MAX_LOOKED_ROOMS } from '../limits/cluster.ts'
import type { SyncRequest } from '../sync/look.ts'
import type { Notifier, WakeFollower } from '../sync/notifier.ts'
import type { Circumstances } from '../sync/sliding/read-request.ts'
import type { SlidingRequest } from '../sync/sliding/request.ts'
import type { SlidingSync } from '../sync/sliding/sliding-sync.ts'
import type { Sync, WholeAnswer } from '../sync/sync.ts'
import { createTokenOf, type StreamPosition } from '../sync/token.ts'
import type { UserRooms } from '../sync/user-rooms.ts'

/** A sync that another node holds: whose it is, and what it asks. */
export interface AskedSync extends Pick<SyncRequest, 'presence'> {
  /** The access token. */
  readonly token: string
  /** The token, or the position of a connection. */
  readonly since: string
  readonly wish: ClassicWish | SlidingWish
  readonly ip: string
  readonly userAgent: string | undefined
}

/** What a classic sync asks for. */
export interface ClassicWish extends Pick<SyncRequest, 'stateAfter'> {
  /** As it was sent: the id of a filter, or its definition. */
  readonly filter: string | undefined
}

/** What a sliding sync asks for. */
export interface SlidingWish {
  readonly form: 'merged' | 'unstable'
  /** The body, without what says how long to wait, and from where. */
  readonly body: string
  readonly connId: string
}

/** Reads a sliding sync, as its endpoint does. @throws ProtocolError for what the endpoint refuses */
export type ReadSliding = (wish: SlidingWish, circumstances: Circumstances) => SlidingRequest

/** What was found for it. */
export interface LookedSync {
  readonly by: Holder
  /** Whether there is no news for the client. */
  readonly isEmpty: boolean
  /** The position of all streams when the look began. */
  readonly position: string
  /** When the session ends; null if it does not. */
  readonly endsAt: number | null
  /** Of an empty one, or with `nothingNew`: the rooms whose wake-ups may mean news, besides those of the user. */
  readonly rooms: readonly number[]
  /** Of sliding sync: stands for the connection among all. */
  readonly connection?: string
  readonly body: string | Buffer
  /** Of one with news: the answer to who goes on from it, until something wakes that sync. Undefined where a look may find more. */
  readonly nothingNew?: string | undefined
}

/** Whose a sync is. */
export type Holder = Pick<Requester, 'userId' | 'userNid' | 'deviceId' | 'tokenNid' | 'isGuest'>

/** What the node that serves does for the syncs that other nodes hold. */
export interface SyncDesk {
  /**
   * Looks for news, as a sync does that does not wait. Undefined for one that has to be passed on whole, also because its answer would be an
   * error, or long.
   */
  look(asked: AskedSync, from: SyncFollower): Promise<LookedSync | undefined>
  /** Where all streams stand, as a text that differs after each change. */
  position(): string
  /** Whether a session goes on, although its syncs were ended. */
  isGoingOn(tokenNid: number): Promise<boolean>
  /** Has a follower hear of whatever may make an answer differ from an earlier one. @returns what ends that; undefined during a stop */
  follow(follower: SyncFollower): (() => void) | undefined
}

export interface SyncFollower extends WakeFollower {
  /** All sessions of a user may have ended, or those of one device. */
  ended(userNid: number, deviceId: string | undefined): void
}

/** The node that holds it knows when its client is gone. */
const HERE_TO_STAY: Cancellation = { aborted: false, addEventListener() {}, removeEventListener() {} }

export function createSyncDesk(parts: {
  readonly sessions: Pick<Sessions, 'find' | 'seen' | 'endOf' | 'onForget' | 'verify'>
  readonly filters: Pick<Filters, 'ofRequest'>
  readonly sync: Pick<Sync, 'look'>
  readonly slidingSync: Pick<SlidingSync, 'look'>
  readonly readSliding: ReadSliding
  readonly userRooms: Pick<UserRooms, 'of'>
  readonly notifier: Pick<Notifier, 'follow' | 'isDraining'>
  now(): StreamPosition
}): SyncDesk {
  const { sessions, filters, sync, slidingSync, userRooms, notifier } = parts
  const followers = new Set<SyncFollower>()
  sessions.onForget((userNid, deviceId) => {
    for (const follower of followers) follower.ended(userNid, deviceId)
  })

  const tokenOf = createTokenOf()
  const position = (): string => tokenOf(parts.now())

  async function find(
    by: Requester,
    { since, presence, wish }: AskedSync,
    from: SyncFollower,
  ): Promise<(WholeAnswer & { readonly connection?: string }) | undefined> {
    const circumstances = { timeoutMs: 0, presence, signal: HERE_TO_STAY }
    if ('form' in wish) return slidingSync.look(by, parts.readSliding(wish, { ...circumstances, pos: since }), from)
    const filter = await filters.ofRequest(by.userNid, wish.filter)
    return sync.look(by, { ...circumstances, since, filter, fullState: false, stateAfter: wish.stateAfter })
  }

  async function look(asked: AskedSync, from: SyncFollower): Promise<LookedSync | undefined> {
    // All that wakes it from here on is heard of by who asks.
    const begun = position()
    const by = await sessions.find(asked.token)
    if (by === undefined || by.isLocked) return undefined
    sessions.seen(by, () => asked.ip, asked.userAgent)
    // As they are now: who joins another one later is woken.
    const { joined } = await userRooms.of(by.userNid)
    if (joined.size > MAX_LOOKED_ROOMS) return undefined
    const found = await find(by, asked, from)
    if (found === undefined || !found.json.isWhole || found.json.length > MAX_LOOKED_BYTES) return undefined
    const { userId, userNid, deviceId, tokenNid, isGuest } = by
    const endsAt = sessions.endOf(by)
    return {
      by: { userId, userNid, deviceId, tokenNid, isGuest },
      isEmpty: found.isEmpty,
      position: begun,
      endsAt: Number.isFinite(endsAt) ? endsAt : null,
      rooms: found.isEmpty || found.nothingNew ? [...joined.keys()] : [],
      ...(found.connection !== undefined && { connection: found.connection }),
      body: found.json.whole(),
      nothingNew: found.nothingNew?.whole().toString(),
    }
  }

  return {
    position,
    isGoingOn: (tokenNid) =>
      sessions.verify({ tokenNid }).then(
        () => true,
        () => false,
      ),
    follow(follower) {
      if (notifier.isDraining) return undefined
      followers.add(follower)
      const unfollow = notifier.follow(follower)
      return () => {
        followers.delete(follower)
        unfollow()
      }
    },
    look: (asked, from) =>
      look(asked, from).catch((error: unknown) => {
        // The client gets it where the request is passed on to.
        if (error instanceof ProtocolError) return undefined
        throw error
      }),
  }
}
