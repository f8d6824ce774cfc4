import { createCache } from '../../core/cache.ts'
import type { JsonObject } from '../../core/json.ts'
import { writeJson } from '../../core/large-integers.ts'
import type { PushOutcome } from '../../core/push/default-rules.ts'
import type { PusherRow } from '../../store/accounts/pushers.ts'
import { MAX_NOTIFIED_EVENT_BYTES } from '../limits/pushers.ts'
import { dataOf } from '../pushers/pushers.ts'
import type { RoomRegistry } from '../rooms/room/registry.ts'
import { nameOf, type RoomEvent } from '../rooms/room/room-event.ts'
import type { WordsOf } from './room-words.ts'

/** Writes the bodies of requests to push gateways (push gateway API, "POST notify"). */
export interface NotificationBodies {
  /** @param unread 0 for a pusher that wants no counts, and otherwise what the badge shows */
  ofEvent(event: RoomEvent, outcome: PushOutcome, to: Addressee, unread: number): Promise<string>
  /**
   * Counts alone. Zero is written out here, although counts of zero should be left out: a gateway could not tell it from no news, and the
   * badge would stay.
   */
  ofCounts(to: Addressee, unread: number): string
}

/** A pusher as gateways get to know it. */
export interface Addressee {
  readonly userId: string
  readonly url: string
  /** The scheme, host and port of the URL; empty if it is none. */
  readonly origin: string
  readonly isEventIdOnly: boolean
  readonly wantsCounts: boolean
  /** `app_id`, `pushkey`, `pushkey_ts` and `data` as the inside of a JSON object. */
  readonly device: string
}

export function addresseeOf(row: PusherRow): Addressee {
  const { url: given, ...data } = dataOf(row)
  const url = typeof given === 'string' ? given : ''
  const { app_id, pushkey, set_at } = row
  const device = { app_id, pushkey, pushkey_ts: Math.floor(set_at / 1000), data }
  return {
    userId: row.user_id,
    url,
    origin: URL.canParse(url) ? new URL(url).origin : '',
    isEventIdOnly: data.format === 'event_id_only',
    wantsCounts: data['org.matrix.msc4076.disable_badge_count'] !== true,
    device: inside(device),
  }
}

interface Described {
  readonly text: Promise<string>
  readonly bytes: number
}

const inside = (object: JsonObject): string => writeJson(object).slice(1, -1)

export function createNotificationBodies({
  registry,
  wordsOf,
}: {
  readonly registry: Pick<RoomRegistry, 'getByNid'>
  readonly wordsOf: WordsOf
}): NotificationBodies {
  /** What is the same for all who are notified of an event. */
  const shared = createCache<RoomEvent, Described>(MAX_NOTIFIED_EVENT_BYTES, { sizeOf: ({ bytes }) => bytes })

  async function describe(event: RoomEvent): Promise<string> {
    const room = await registry.getByNid(event.roomNid)
    const { senderName, roomName, roomAlias } = await wordsOf(event)
    return inside({
      event_id: nameOf(event),
      room_id: room.id,
      type: event.type,
      sender: event.sender,
      ...(senderName !== undefined && { sender_display_name: senderName }),
      ...(roomName !== undefined && { room_name: roomName }),
      ...(roomAlias !== undefined && { room_alias: roomAlias }),
      content: event.content,
    })
  }

  function described(event: RoomEvent): Promise<string> {
    const known = shared.get(event)
    if (known) return known.text
    const text = describe(event)
    shared.set(event, { text, bytes: 2 * event.bytes })
    text.catch(() => shared.delete(event))
    return text
  }

  return {
    async ofEvent(event, outcome, to, unread) {
      const rest = `"counts":${unread > 0 ? `{"unread":${unread}}` : '{}'}`
      if (to.isEventIdOnly) {
        const { id: room_id } = await registry.getByNid(event.roomNid)
        const names = inside({ event_id: nameOf(event), room_id, prio: priorityOf(event, outcome) })
        return `{"notification":{${names},${rest},"devices":[{${to.device}}]}}`
      }
      const { type, pdu } = event
      const isTarget = type === 'm.room.member' && pdu.state_key === to.userId
      const own = `"prio":"${priorityOf(event, outcome)}"${isTarget ? ',"user_is_target":true' : ''},${rest}`
      const device = `{${to.device},"tweaks":${writeJson(outcome.tweaks)}}`
      return `{"notification":{${await described(event)},${own},"devices":[${device}]}}`
    },
    ofCounts: (to, unread) => `{"notification":{"counts":{"unread":${unread}},"devices":[{${to.device}}]}}`,
  }
}

/** Whether a phone is woken at once. Only the phone can tell whether an encrypted event deserves that. */
function priorityOf({ type }: RoomEvent, { highlight, sound }: PushOutcome): 'high' | 'low' {
  return type === 'm.room.encrypted' || highlight || sound !== undefined ? 'high' : 'low'
}
