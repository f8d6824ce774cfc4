import type { ByteBudget } from '../../core/byte-budget.ts'
import type { Reader } from '../../store/db/db.ts'
import {
  hasThreadSubscriptions,
  listThreadFollowers,
  type UsersThread,
} from '../../store/rooms/thread-subscriptions.ts'
import type { EventCache } from '../rooms/room/event-cache.ts'
import type { Room } from '../rooms/room/room.ts'
import type { RoomEvent } from '../rooms/room/room-event.ts'
import { rootOf } from '../rooms/room/threads.ts'

/** The thread that an event is in. */
export interface EventThread {
  readonly rootId: string
  /** The local users who follow it, by number. */
  readonly followers: ReadonlySet<number>
}

/** Who follows which thread (MSC4306), for push rules. As long as nobody follows any, nothing is read. */
export interface ThreadFollowers {
  /** The thread of an event; undefined for the main timeline. Synchronous where no query is needed. */
  threadOf(
    room: Room,
    event: Pick<RoomEvent, 'isState' | 'content'>,
  ): EventThread | undefined | Promise<EventThread | undefined>
  /** A user began or ceased to follow a thread. */
  changed(thread: UsersThread, isFollowing: boolean): void
  /** Commits were missed: all is read again. */
  forgetAll(): void
}

const NOBODY: ReadonlySet<number> = new Set()

/** Bytes of a set with its key, and of one number in it. */
const SET_BYTES = 400
const FOLLOWER_BYTES = 40

export async function openThreadFollowers(parts: {
  readonly db: Reader
  readonly budget: ByteBudget
  readonly events: Pick<EventCache, 'getById'>
}): Promise<ThreadFollowers> {
  const { db, budget, events } = parts
  const held = budget.part<string, Set<number>>({ bytesOf: ({ size }) => SET_BYTES + FOLLOWER_BYTES * size })
  let isUsed = await hasThreadSubscriptions(db)
  let version = 0

  async function read(roomNid: number, rootId: string): Promise<ReadonlySet<number>> {
    const before = version
    const followers = new Set(await listThreadFollowers(db, roomNid, rootId))
    // A subscription changed meanwhile: what was read may be older.
    if (before !== version) return read(roomNid, rootId)
    held.set(keyOf(roomNid, rootId), followers)
    return followers
  }

  function withFollowers(roomNid: number, rootId: string | undefined): EventThread | undefined | Promise<EventThread> {
    if (rootId === undefined) return undefined
    const followers = isUsed ? held.get(keyOf(roomNid, rootId)) : NOBODY
    return followers ? { rootId, followers } : read(roomNid, rootId).then((found) => ({ rootId, followers: found }))
  }

  return {
    threadOf(room, event) {
      const root = rootOf(room, events, event)
      return root instanceof Promise
        ? root.then((rootId) => withFollowers(room.nid, rootId))
        : withFollowers(room.nid, root)
    },
    changed({ userNid, roomNid, rootId }, isFollowing) {
      version++
      isUsed ||= isFollowing
      const followers = held.get(keyOf(roomNid, rootId))
      if (isFollowing) followers?.add(userNid)
      else followers?.delete(userNid)
    },
    forgetAll() {
      version++
      isUsed = true
      held.clear()
    },
  }
}

const keyOf = (roomNid: number, rootId: string): string => `${roomNid} ${rootId}`
