import { ProtocolError } from '../../core/errors.ts'
import { JsonBytes } from '../../core/json-bytes.ts'
import { writeJson } from '../../core/large-integers.ts'
import { getRecentEvents } from '../../store/accounts/pushers.ts'
import type { Reader } from '../../store/db/db.ts'
import type { Requester } from '../accounts/requester.ts'
import type { Clock } from '../clock.ts'
import { MAX_EVENT_PAGE_BYTES } from '../limits/answers.ts'
import {
  MAX_EVENTS_EVALUATED_FOR_NOTIFICATIONS,
  MAX_NOTIFICATION_EVENTS,
  MAX_NOTIFICATION_EVENTS_PER_ROOM,
  MAX_NOTIFICATIONS,
  MIN_NOTIFICATION_EVENTS_PER_ROOM,
} from '../limits/notifications.ts'
import { loadReferences, writeClientEvent } from '../rooms/room/client-event.ts'
import type { RoomAccess } from '../rooms/room/room-access.ts'
import type { RoomEvent } from '../rooms/room/room-event.ts'
import type { RoomBase } from '../rooms/room-base-services.ts'
import { createEvaluation } from './evaluation.ts'
import type { Notice } from './notice.ts'

export interface NotificationsQuery {
  /** `next_token` of an earlier answer. */
  readonly from?: string | undefined
  /** 50 by default. */
  readonly limit?: number | undefined
  readonly onlyHighlights: boolean
}

/** The events that a user was notified of, newest first (client-server API, "Listing Notifications"). */
export interface Notifications {
  /**
   * The body of the answer. It is computed from the newest events of the user's rooms and from the rules as they are now. It may have fewer
   * notifications than wanted, and still a `next_token`, because one answer looks at a limited number of events.
   *
   * @throws ProtocolError `M_INVALID_PARAM` for a text that is no token
   */
  list(by: Requester, query: NotificationsQuery): Promise<JsonBytes>
}

export interface NotificationParts {
  readonly db: Reader
  readonly clock: Clock
  readonly roomBase: Pick<RoomBase, 'events' | 'registry' | 'userRooms' | 'unread' | 'pushRules' | 'invitePermission'>
  readonly access: Pick<RoomAccess, 'visibleTo' | 'membershipsAt'>
}

/** An event that may have notified the user. */
interface Candidate {
  readonly roomNid: number
  readonly eventNid: number
  readonly position: number
  readonly isInvitation: boolean
}

interface Found {
  readonly event: RoomEvent
  readonly notice: Notice
}

const DEFAULT_LIMIT = 50
const CHUNK = 100
const TOKEN = /^p([0-9]{1,16})$/

export function createNotifications(parts: NotificationParts): Notifications {
  const { db, clock, access } = parts
  const { events, registry, userRooms, unread, pushRules, invitePermission } = parts.roomBase
  const evaluation = createEvaluation({ clock, pushRules, registry, events, access, invitePermission })

  async function candidates(userNid: number, before: number): Promise<Candidate[]> {
    const joined: number[] = []
    const found: Candidate[] = []
    for (const [roomNid, { membership, eventNid, changedAt }] of await userRooms.of(userNid)) {
      if (membership === 'join') joined.push(roomNid)
      else if (membership === 'invite' && changedAt < before) {
        found.push({ roomNid, eventNid, position: changedAt, isInvitation: true })
      }
    }
    const share = Math.floor(MAX_NOTIFICATION_EVENTS / Math.max(1, joined.length))
    const perRoom = Math.min(MAX_NOTIFICATION_EVENTS_PER_ROOM, Math.max(MIN_NOTIFICATION_EVENTS_PER_ROOM, share))
    const limit = MAX_EVENTS_EVALUATED_FOR_NOTIFICATIONS
    for (const row of await getRecentEvents(db, userNid, joined, { before, perRoom, limit })) {
      const { room_nid: roomNid, event_nid: eventNid, position } = row
      found.push({ roomNid, eventNid, position, isInvitation: false })
    }
    return found.sort((a, b) => b.position - a.position).slice(0, limit)
  }

  /** The notification of a candidate, if there was one and the user may see its event. */
  async function evaluate(by: Requester, one: Candidate, event: RoomEvent | undefined): Promise<Found | undefined> {
    if (!event || event.redactedBy !== undefined) return undefined
    if (one.isInvitation) {
      const notice = await evaluation.ofInvitation(one.roomNid, { ...one, userNid: by.userNid }, by)
      return notice && { event, notice }
    }
    const room = await registry.getByNid(one.roomNid)
    const [notified] = await evaluation.ofEvent(room, event, [by], event.ts)
    const [shown] = notified ? await access.visibleTo(by, room, [event]) : []
    return notified && shown && { event: shown, notice: notified.notice }
  }

  async function write(out: JsonBytes, by: Requester, { event, notice }: Found): Promise<void> {
    const room = await registry.getByNid(event.roomNid)
    const read = !notice.isInvitation && (await unread.hasRead(by.userNid, event))
    const { actions } = notice.outcome
    const facts = writeJson({ actions, profile_tag: null, read, room_id: room.id, ts: event.ts })
    out.text(`${facts.slice(0, -1)},"event":`)
    const { tokenNid, earlierTokens, userNid } = by
    writeClientEvent(out, event, { now: clock.now(), tokenNid, earlierTokens, userNid })
    out.text('}')
  }

  /** Looks at candidates until there are enough. `next` is the position that the next answer begins before. */
  async function collect(by: Requester, all: readonly Candidate[], limit: number, onlyHighlights: boolean) {
    const found: Found[] = []
    let bytes = 0
    for (let start = 0; start < all.length; start += CHUNK) {
      const chunk = all.slice(start, start + CHUNK)
      const loaded = await events.load(chunk.map(({ eventNid }) => eventNid))
      for (const one of chunk) {
        const notification = await evaluate(by, one, loaded.get(one.eventNid))
        if (!notification || (onlyHighlights && !notification.notice.outcome.highlight)) continue
        found.push(notification)
        bytes += notification.event.json.length
        if (found.length === limit || bytes > MAX_EVENT_PAGE_BYTES) return { found, next: one.position }
      }
    }
    const isWhole = all.length < MAX_EVENTS_EVALUATED_FOR_NOTIFICATIONS
    return { found, next: isWhole ? undefined : all.at(-1)?.position }
  }

  return {
    async list(by, { from, limit = DEFAULT_LIMIT, onlyHighlights }) {
      const before = from === undefined ? Number.MAX_SAFE_INTEGER : positionOf(from)
      const all = await candidates(by.userNid, before)
      const { found, next } = await collect(by, all, Math.min(limit, MAX_NOTIFICATIONS), onlyHighlights)
      await loadReferences(
        events,
        found.map(({ event }) => event),
      )
      const out = new JsonBytes().text('{"notifications":[')
      for (const [index, one] of found.entries()) {
        if (index > 0) out.text(',')
        await write(out, by, one)
      }
      return out.text(next === undefined ? ']}' : `],"next_token":"p${next}"}`)
    },
  }
}

function positionOf(token: string): number {
  const [, digits] = TOKEN.exec(token) ?? []
  if (digits === undefined) throw new ProtocolError('M_INVALID_PARAM', 'This is no token of a list of notifications.')
  return Number(digits)
}
