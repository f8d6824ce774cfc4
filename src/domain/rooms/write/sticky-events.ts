import type { Logger } from 'pino'
import { stickyMsOf, stickyUntil } from '../../../core/event/sticky.ts'
import type { Reader } from '../../../store/db/db.ts'
import { forgetStickyEvents, type StickyWrite, stickyEventsAt } from '../../../store/events/sticky.ts'
import type { Clock } from '../../clock.ts'
import {
  MAX_STICKY_BYTES_PER_ROOM,
  MAX_STICKY_EVENTS,
  MAX_STICKY_PER_ROOM,
  MAX_STICKY_PER_SENDER,
} from '../../limits/sticky-events.ts'
import { type EventPosition, isNewer } from '../../sync/token.ts'
import { BY_CURRENT_STATE } from '../room/event-references.ts'
import type { RoomEvent } from '../room/room-event.ts'
import { streamed, type Unit } from './unit.ts'

/** An event that is sticky. */
export interface StickyEvent {
  readonly nid: number
  readonly senderNid: number
  readonly streamPos: number
  /** Milliseconds. */
  readonly until: number
  readonly bytes: number
}

/** The events that are sticky now (MSC4354), by room. A table keeps them over a restart. */
export interface StickyEvents {
  /** Whether there may be any at all. */
  readonly isEmpty: boolean
  /** Those of a room that are newer than one position, and no newer than another, the oldest first. */
  between(roomNid: number, since: EventPosition | undefined, upTo: EventPosition): readonly StickyEvent[]
  /** Until when an event is sticky, in milliseconds; undefined for one that is not. */
  until(roomNid: number, nid: number): number | undefined
  /** The numbers of a room's newest, at most so many, in the order of the stream. */
  newest(roomNid: number, atMost: number): readonly number[]
  committed(unit: Unit): void
  /** Commits were missed: reads again which are sticky. */
  missed(): void
}

/** What the commit of these units writes of sticky events. @param now when they came, in milliseconds */
export function stickyWrites(units: readonly Unit[], now: number): StickyWrite[] {
  return units.flatMap((unit) =>
    streamed(unit).flatMap((event) => {
      const until = expiryOf(event, now) ?? appealsUntil(event, now)
      return until === undefined ? [] : [{ roomNid: unit.room.nid, eventNid: event.nid, expiresAt: until }]
    }),
  )
}

/** Undefined for events that nobody sees as new, and for those that are sticky no more when they come. */
function expiryOf(event: RoomEvent, now: number): number | undefined {
  return event.standing === undefined && event.isInTimeline && !event.isHistory ? stickyAfter(event, now) : undefined
}

/**
 * Until when a soft-failed message may still be accepted, in milliseconds: while it would be sticky, if only the state of the room excludes
 * it. Undefined for all others.
 */
export function appealsUntil(event: RoomEvent, now: number): number | undefined {
  const mayAppeal = event.standing === 'soft-failed' && event.keyId === undefined && !event.isHistory
  return mayAppeal && event.reason?.startsWith(BY_CURRENT_STATE) ? stickyAfter(event, now) : undefined
}

function stickyAfter(event: RoomEvent, now: number): number | undefined {
  const ms = stickyMsOf(event.pdu)
  if (ms === undefined) return undefined
  const until = stickyUntil(event.ts, now, ms)
  return until > now ? until : undefined
}

export async function openStickyEvents(parts: {
  readonly db: Reader
  readonly clock: Clock
  readonly log: Logger
}): Promise<StickyEvents> {
  const { db, clock, log } = parts
  let rooms = new Map<number, StickyEvent[]>()
  let count = 0

  function set(roomNid: number, events: StickyEvent[]): void {
    count += events.length - (rooms.get(roomNid)?.length ?? 0)
    if (events.length === 0) rooms.delete(roomNid)
    else rooms.set(roomNid, events)
  }

  /** Those that are sticky still. */
  function current(roomNid: number): readonly StickyEvent[] {
    const events = rooms.get(roomNid)
    if (events === undefined) return NONE
    const now = clock.now()
    if (events.every(({ until }) => until > now)) return events
    const left = events.filter(({ until }) => until > now)
    set(roomNid, left)
    return left
  }

  function hasRoom(): boolean {
    if (count >= MAX_STICKY_EVENTS) for (const roomNid of [...rooms.keys()]) current(roomNid)
    return count < MAX_STICKY_EVENTS
  }

  function add(roomNid: number, event: StickyEvent): void {
    if (hasRoom()) set(roomNid, withinBounds([...current(roomNid), event]))
  }

  async function read(): Promise<void> {
    rooms = new Map()
    count = 0
    for (const row of await stickyEventsAt(db, clock.now(), MAX_STICKY_EVENTS)) {
      add(row.room_nid, {
        nid: row.event_nid,
        senderNid: row.sender_nid,
        streamPos: row.stream_pos,
        until: row.expires_at,
        bytes: row.bytes,
      })
    }
  }

  await read()
  return {
    get isEmpty() {
      return rooms.size === 0
    },
    between: (roomNid, since, upTo) =>
      current(roomNid).filter(
        ({ streamPos }) => (since === undefined || isNewer(streamPos, since)) && !isNewer(streamPos, upTo),
      ),
    until: (roomNid, nid) => current(roomNid).find((event) => event.nid === nid)?.until,
    newest: (roomNid, atMost) =>
      current(roomNid)
        .slice(-atMost)
        .map(({ nid }) => nid),
    committed(unit) {
      const { nid: roomNid } = unit.room
      const now = clock.now()
      for (const event of streamed(unit)) {
        const until = expiryOf(event, now)
        if (until === undefined) continue
        const { nid, senderNid, streamPos, json } = event
        add(roomNid, { nid, senderNid, streamPos, until, bytes: Buffer.byteLength(json) })
      }
      if (unit.redactions.length === 0 || !rooms.has(roomNid)) return
      const redacted = new Set(unit.redactions.map(({ event }) => event.nid))
      set(
        roomNid,
        current(roomNid).filter(({ nid }) => !redacted.has(nid)),
      )
    },
    missed() {
      read().catch((err: unknown) => log.error({ err }, 'which events are sticky could not be read again'))
    },
  }
}

const NONE: readonly StickyEvent[] = []

/** Without the oldest of the newest one's sender, and of the room, if these are too many. */
function withinBounds(events: readonly StickyEvent[]): StickyEvent[] {
  const sender = events.at(-1)!.senderNid
  let ofSender = 0
  let all = 0
  let bytes = 0
  const kept: StickyEvent[] = []
  for (const event of events.toReversed()) {
    if (event.senderNid === sender && ++ofSender > MAX_STICKY_PER_SENDER) continue
    bytes += event.bytes
    if (++all > MAX_STICKY_PER_ROOM || bytes > MAX_STICKY_BYTES_PER_ROOM) break
    kept.push(event)
  }
  return kept.reverse()
}

export const stickyEventChores = [forgetStickyEvents]
