import { ProtocolError } from '../../../core/errors.ts'
import type { EventId, RoomId } from '../../../core/ids.ts'
import { JsonBytes } from '../../../core/json-bytes.ts'
import type { Requester } from '../../accounts/requester.ts'
import type { Cancellation } from '../../cancellation.ts'
import type { Clock } from '../../clock.ts'
import { MAX_EVENTS_WAIT_MS } from '../../limits/peeking.ts'
import type { RoomReader } from '../../rooms/read/reader.ts'
import type { HeldSync } from '../held-syncs.ts'
import type { Notifier } from '../notifier.ts'
import type { SyncSources } from '../sources.ts'
import { decodeStreamToken, encodeStreamToken, type StreamPosition } from '../token.ts'
import { createEventNews, type Found, isForbidden, type News } from './event-news.ts'

export interface EventsRequest {
  /** The token of the previous answer; by default now. */
  readonly from: string | undefined
  readonly timeoutMs: number
  /** Events of this room alone, which the user need not be in; by default of all rooms of the user. */
  readonly roomId: RoomId | undefined
  readonly signal: Cancellation
}

/** New events as clients read them before sync (client-server API, `GET events`), and by which they preview rooms. */
export interface EventStream {
  /**
   * `{start, end, chunk}`: the events after a token that the user may see. Waits for one when there is none, as long as syncs may.
   *
   * @throws ProtocolError `M_FORBIDDEN` for a room that the user may not read, `M_INVALID_PARAM` for a token that is not ours
   */
  events(by: Requester, request: EventsRequest): Promise<JsonBytes>
  /** One event, whatever its room. @throws ProtocolError `M_NOT_FOUND` */
  event(by: Requester, eventId: EventId): Promise<JsonBytes>
}

export function createEventStream(parts: {
  readonly clock: Clock
  readonly notifier: Notifier
  readonly sources: Pick<SyncSources, 'db' | 'registry' | 'userRooms' | 'events' | 'roomEvents'>
  readonly roomReader: Pick<RoomReader, 'event' | 'recent'>
  /** The current position of every stream. */
  now(): StreamPosition
}): EventStream {
  const { clock, notifier, sources, roomReader } = parts
  const { registry, userRooms, events } = sources
  const { recent } = roomReader
  const look = createEventNews(parts)

  function positionOf(token: string): StreamPosition {
    const position = decodeStreamToken(token)
    if (!position) throw new ProtocolError('M_INVALID_PARAM', '`from` is not a token that this server gave out.')
    return position
  }

  async function roomNidsFor(by: Requester, roomId: RoomId | undefined): Promise<number[]> {
    if (roomId !== undefined) return [(await recent.mustPreview(by, roomId)).room.nid]
    const rooms = await userRooms.of(by.userNid)
    return [...rooms].flatMap(([nid, { membership }]) => (membership === 'join' ? [nid] : []))
  }

  /** Listens before it looks, so that it misses nothing in between. */
  async function waitForNews(by: Requester, request: EventsRequest, since: StreamPosition): Promise<News> {
    const { roomId, signal } = request
    const endsAt = notifier.held.endOf(by)
    const deadline = clock.now() + Math.min(request.timeoutMs, MAX_EVENTS_WAIT_MS)
    let held: HeldSync | undefined
    let news: News = { found: [], upTo: since }
    try {
      for (;;) {
        const interest = { userNid: by.userNid, roomNids: await roomNidsFor(by, roomId) }
        const wait = notifier.wait(interest, Math.min(deadline, endsAt) - clock.now(), signal)
        try {
          news = await look(by, roomId, news.upTo)
          const isDue = clock.now() >= deadline || signal.aborted || notifier.isDraining
          if (news.found.length > 0 || isDue) return news
          held ??= notifier.held.hold(by)
          held.onOver(wait.cancel)
          await wait.woken
        } finally {
          wait.cancel()
        }
        if (clock.now() >= endsAt) held.end()
        if (held.over) {
          await held.over
          return news
        }
      }
    } catch (error) {
      // The room is no longer open to the user. The next request is refused.
      if (held === undefined || !isForbidden(error)) throw error
      return news
    } finally {
      held?.release()
    }
  }

  async function write(by: Requester, { found }: News): Promise<JsonBytes> {
    const written = new Map<Found, JsonBytes>()
    for (const room of new Set(found.map((one) => one.room))) {
      const here = found.filter((one) => one.room === room)
      const jsons = await recent.write(
        by,
        room,
        here.map(({ event }) => event),
      )
      here.forEach((one, index) => void written.set(one, jsons[index]!))
    }
    const out = new JsonBytes().text('[')
    found.forEach((one, index) => void out.text(index === 0 ? '' : ',').append(written.get(one)!))
    return out.text(']')
  }

  return {
    async events(by, request) {
      const since = request.from === undefined ? parts.now() : positionOf(request.from)
      if (request.roomId !== undefined) await recent.mustPreview(by, request.roomId)
      const news = await waitForNews(by, request, since)
      const out = new JsonBytes()
        .text('{')
        .key('start', true)
        .value(request.from ?? encodeStreamToken(since))
      out.key('end').value(encodeStreamToken(news.upTo))
      return out
        .key('chunk')
        .append(await write(by, news))
        .text('}')
    },
    async event(by, eventId) {
      const event = await events.getById(eventId)
      if (!event) throw noSuchEvent()
      const { id } = await registry.getByNid(event.roomNid)
      return roomReader.event(by, id, eventId)
    },
  }
}

/** The same as for an event that is there and that the user may not see. */
const noSuchEvent = () => new ProtocolError('M_NOT_FOUND', 'There is no such event in this room for you to see.')
