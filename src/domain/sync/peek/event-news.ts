import { ProtocolError } from '../../../core/errors.ts'
import type { RoomId } from '../../../core/ids.ts'
import type { Requester } from '../../accounts/requester.ts'
import { MAX_EVENTS_PER_POLL } from '../../limits/peeking.ts'
import type { RoomReader } from '../../rooms/read/reader.ts'
import type { Room } from '../../rooms/room/room.ts'
import type { RoomEvent } from '../../rooms/room/room-event.ts'
import { roomsWithEvents } from '../active-rooms.ts'
import type { SyncSources } from '../sources.ts'
import { encodeStreamToken, isNewer, type StreamPosition, writerOf } from '../token.ts'
import type { UserRoom } from '../user-rooms.ts'

/** An event of one of several rooms. */
export interface Found {
  readonly room: Room
  readonly event: RoomEvent
}

export interface News {
  readonly found: readonly Found[]
  /** Up to where nothing is left out. */
  readonly upTo: StreamPosition
}

/** Looks once for the events after a position: of one room, or of all rooms of the user. @throws ProtocolError `M_FORBIDDEN` */
export type LookForEvents = (by: Requester, roomId: RoomId | undefined, since: StreamPosition) => Promise<News>

export function createEventNews(parts: {
  readonly sources: Pick<SyncSources, 'db' | 'registry' | 'userRooms' | 'events' | 'roomEvents'>
  readonly roomReader: Pick<RoomReader, 'recent'>
  /** The current position of every stream. */
  now(): StreamPosition
}): LookForEvents {
  const { sources } = parts
  const { registry, userRooms, events } = sources
  const { recent } = parts.roomReader

  /** The first events of those found, in the order of the stream. */
  function cut(found: readonly Found[], now: StreamPosition): News {
    const ordered = found
      .filter(({ event }) => !isNewer(event.streamPos, now.events))
      .sort((a, b) => a.event.streamPos - b.event.streamPos)
    const shown = ordered.slice(0, MAX_EVENTS_PER_POLL)
    const last = shown.at(-1)?.event.streamPos
    const isCut = last !== undefined && shown.length === MAX_EVENTS_PER_POLL
    const upTo = isCut ? { ...now, events: now.events.with(writerOf(last), last) } : now
    return { found: shown, upTo }
  }

  async function eventsOf(by: Requester, roomId: RoomId, since: StreamPosition): Promise<Found[]> {
    const readable = await recent.mustPreview(by, roomId)
    const { room } = readable
    if (!isNewer(room.committed.nid, since.events)) return []
    const fresh = await recent.after(by, readable, encodeStreamToken(since), MAX_EVENTS_PER_POLL)
    return fresh.map((event) => ({ room, event }))
  }

  /** A user's own membership in a room that they are not in. Of other events there, former members see those before they left. */
  async function ownMembership(roomNid: number, { eventNid }: UserRoom): Promise<Found[]> {
    const [room, loaded] = await Promise.all([registry.getByNid(roomNid), events.load([eventNid])])
    const event = loaded.get(eventNid)
    return event ? [{ room, event }] : []
  }

  async function eventsOfAll(by: Requester, since: StreamPosition): Promise<Found[]> {
    const rooms = await userRooms.of(by.userNid)
    const changed = [...rooms].filter(([, { changedAt, forgotten }]) => !forgotten && isNewer(changedAt, since.events))
    const joined = [...rooms].flatMap(([nid, { membership }]) => (membership === 'join' ? [nid] : []))
    const found: Found[] = []
    for (const nid of await roomsWithEvents(sources, since.events, joined)) {
      found.push(...(await eventsOf(by, (await registry.getByNid(nid)).id, since)))
    }
    for (const [nid, membership] of changed) {
      if (membership.membership === 'join') continue
      const own = await ownMembership(nid, membership)
      const { id } = await registry.getByNid(nid)
      const others = await eventsOf(by, id, since).catch(orNothing)
      found.push(...others.filter(({ event }) => event.nid !== membership.eventNid), ...own)
    }
    return found
  }

  return async (by, roomId, since) => {
    // The position is taken first, so that it covers no event that is read later.
    const now = parts.now()
    const found = roomId === undefined ? await eventsOfAll(by, since) : await eventsOf(by, roomId, since)
    return cut(found, now)
  }
}

export const isForbidden = (error: unknown): boolean =>
  error instanceof ProtocolError && error.errcode === 'M_FORBIDDEN'

function orNothing(error: unknown): [] {
  if (isForbidden(error)) return []
  throw error
}
