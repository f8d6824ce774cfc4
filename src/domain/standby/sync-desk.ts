import { ProtocolError } from '../../core/errors.ts'
import type { Filters } from '../accounts/filters.ts'
import type { Requester } from '../accounts/requester.ts'
import type { Sessions } from '../accounts/sessions.ts'
import type { Cancellation } from '../cancellation.ts'
import { MAX_LOOKED_BYTES, MAX_LOOKED_ROOMS } from '../limits/cluster.ts'
import type { SyncRequest } from '../sync/look.ts'
import type { Notifier, WakeFollower } from '../sync/notifier.ts'
import type { Sync } from '../sync/sync.ts'
import { encodeStreamToken, type StreamPosition } from '../sync/token.ts'
import type { UserRooms } from '../sync/user-rooms.ts'

/** A sync that another node holds: whose it is, and what it asks. */
export interface AskedSync extends Pick<SyncRequest, 'stateAfter' | 'presence'> {
  /** The access token. */
  readonly token: string
  readonly since: string
  /** As it was sent: the id of a filter, or its definition. */
  readonly filter: string | undefined
  readonly ip: string
  readonly userAgent: string | undefined
}

/** What was found for it. */
export interface LookedSync {
  readonly by: Holder
  /** Whether there is no news for the client. */
  readonly isEmpty: boolean
  /** The position of all streams when the look began. */
  readonly position: string
  /** When the session ends; null if it does not. */
  readonly endsAt: number | null
  /** Of an empty one: the rooms whose wake-ups may mean news, besides those of the user. */
  readonly rooms: readonly number[]
  readonly body: string | Buffer
}

/** Whose a sync is. */
export type Holder = Pick<Requester, 'userId' | 'userNid' | 'deviceId' | 'tokenNid' | 'isGuest'>

/** What the node that serves does for the syncs that other nodes hold. */
export interface SyncDesk {
  /**
   * Looks for news, as a sync does that does not wait. Undefined for one that has to be passed on whole, also because its answer would be an
   * error, or long.
   */
  look(asked: AskedSync): Promise<LookedSync | undefined>
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
  readonly userRooms: Pick<UserRooms, 'of'>
  readonly notifier: Pick<Notifier, 'follow' | 'isDraining'>
  now(): StreamPosition
}): SyncDesk {
  const { sessions, filters, sync, userRooms, notifier } = parts
  const followers = new Set<SyncFollower>()
  sessions.onForget((userNid, deviceId) => {
    for (const follower of followers) follower.ended(userNid, deviceId)
  })

  const position = (): string => encodeStreamToken(parts.now())

  async function roomsOf(userNid: number): Promise<number[]> {
    const joined: number[] = []
    for (const [nid, { membership }] of await userRooms.of(userNid)) if (membership === 'join') joined.push(nid)
    return joined
  }

  async function look(asked: AskedSync): Promise<LookedSync | undefined> {
    // All that wakes it from here on is heard of by who asks.
    const begun = position()
    const by = await sessions.find(asked.token)
    if (by === undefined || by.isLocked) return undefined
    sessions.seen(by, () => asked.ip, asked.userAgent)
    const rooms = await roomsOf(by.userNid)
    if (rooms.length > MAX_LOOKED_ROOMS) return undefined
    const { since, stateAfter, presence } = asked
    const filter = await filters.ofRequest(by.userNid, asked.filter)
    const wanted = { since, filter, fullState: false, timeoutMs: 0, stateAfter, presence, signal: HERE_TO_STAY }
    const found = await sync.look(by, wanted)
    if (found === undefined || !found.json.isWhole || found.json.length > MAX_LOOKED_BYTES) return undefined
    const { userId, userNid, deviceId, tokenNid, isGuest } = by
    const endsAt = sessions.endOf(by)
    return {
      by: { userId, userNid, deviceId, tokenNid, isGuest },
      isEmpty: found.isEmpty,
      position: begun,
      endsAt: Number.isFinite(endsAt) ? endsAt : null,
      rooms: found.isEmpty ? rooms : [],
      body: found.json.whole(),
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
    look: (asked) =>
      look(asked).catch((error: unknown) => {
        // The client gets it where the request is passed on to.
        if (error instanceof ProtocolError) return undefined
        throw error
      }),
  }
}
