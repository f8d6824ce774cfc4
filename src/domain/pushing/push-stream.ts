import { setTimeout as pause } from 'node:timers/promises'
import type { Logger } from 'pino'
import { getInvitationsBetween, roomsWithPushers } from '../../store/accounts/pushers.ts'
import { getStream } from '../../store/appservices/appservice-queue.ts'
import type { Database } from '../../store/db/db.ts'
import { MAX_UNEVALUATED_EVENTS, MISSED_EVENTS_PER_PAGE } from '../limits/pushers.ts'
import type { EventCache } from '../rooms/room/event-cache.ts'
import type { RoomNews } from './notice.ts'

/** Follows the event stream. News of commits saves reading it; what was missed is read. */
export interface PushStream {
  /** News right after its commit, in order. */
  add(news: RoomNews): void
  /** Everything up to a position was committed, with or without news. */
  reached(position: number): void
  /** What lies between the last news and a position must be read. */
  missed(position: number): void
  /** Everything up to this position was handed on. */
  position(): number
  /** How many positions of the stream are still to be handed on. */
  behind(): number
  /** @param from where the previous process ended @param current the newest position */
  start(from: number, current: number): void
  close(): Promise<void>
}

const PAUSE_AFTER_FAILURE_MS = 1_000

/** @param handOn takes the news of one room. What a failure left out is read again. */
export function createPushStream(parts: {
  readonly db: Database
  readonly events: EventCache
  readonly log: Logger
  handOn(news: RoomNews): Promise<void>
}): PushStream {
  const { db, events, log, handOn } = parts
  let seen = 0
  let position = 0
  let waiting: RoomNews[] = []
  let isBehind = false
  let running: Promise<void> | undefined
  let closing: AbortController | undefined

  function miss(): void {
    isBehind = true
    waiting = []
  }

  /** Reads a page of the stream. News that comes meanwhile waits, unless there is another page. */
  async function readPage(): Promise<void> {
    isBehind = false
    const target = seen
    const found = await getStream(db, position, MISSED_EVENTS_PER_PAGE)
    const isFull = found.length === MISSED_EVENTS_PER_PAGE
    const upTo = isFull ? found.at(-1)!.position : target
    const rooms = await roomsWithPushers(db, [...new Set(found.map(({ room_nid }) => room_nid))])
    const wanted = found.filter(({ room_nid }) => rooms.has(room_nid))
    const loaded = await events.load(wanted.map(({ event_nid }) => event_nid))
    const news: RoomNews[] = wanted.flatMap(({ event_nid, room_nid, position: upTo }) => {
      const event = loaded.get(event_nid)
      return event ? [{ roomNid: room_nid, events: [event], invitations: [], upTo }] : []
    })
    for (const { user_nid, room_nid, event_nid, position: at } of await getInvitationsBetween(db, position, upTo)) {
      const invitation = { userNid: user_nid, eventNid: event_nid, position: at }
      news.push({ roomNid: room_nid, events: [], invitations: [invitation], upTo: at })
    }
    for (const one of news.sort((a, b) => a.upTo - b.upTo)) await handOn(one)
    position = Math.max(position, upTo)
    waiting = waiting.filter((one) => one.upTo > upTo)
    if (isFull) miss()
  }

  async function follow(): Promise<void> {
    while (!closing?.signal.aborted) {
      if (isBehind) await readPage()
      const now = waiting
      if (now.length === 0 && !isBehind) break
      waiting = []
      for (const news of now) {
        await handOn(news)
        position = Math.max(position, news.upTo)
      }
    }
    if (!closing?.signal.aborted) position = Math.max(position, seen)
  }

  function wake(): void {
    if (!closing || closing.signal.aborted) return
    const { signal } = closing
    running ??= follow()
      .catch(async (err) => {
        if (signal.aborted) return
        log.warn({ err }, 'events could not be evaluated for pushers; they will be read again')
        miss()
        await pause(PAUSE_AFTER_FAILURE_MS, undefined, { signal, ref: false }).catch(() => {})
      })
      .finally(() => {
        running = undefined
        if (waiting.length > 0 || isBehind) wake()
      })
  }

  return {
    add(news) {
      if (isBehind && running === undefined) return wake()
      waiting.push(news)
      if (waiting.length > MAX_UNEVALUATED_EVENTS) miss()
      wake()
    },
    reached(at) {
      seen = Math.max(seen, at)
      if (running === undefined && waiting.length === 0 && !isBehind) position = seen
    },
    missed(at) {
      seen = Math.max(seen, at)
      miss()
      wake()
    },
    position: () => position,
    behind: () => Math.max(0, seen - position),
    start(from, current) {
      closing = new AbortController()
      position = from
      seen = Math.max(seen, current)
      if (position < seen) miss()
      wake()
    },
    async close() {
      closing?.abort()
      await running
    },
  }
}
