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
  /** At once, if somebody was notified of the event before. @param unread 0 for a pusher that wants no counts, and otherwise what the badge shows */
  ofEvent(event: RoomEvent, outcome: PushOutcome, to: Addressee, unread: number): string | Promise<string>
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
  /** The text, as soon as it is there. */
  made: string | undefined
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

  /** Of outcomes: there are as many as rules, and each is the same object for all that it is the outcome of. */
  const tweaks = new WeakMap<PushOutcome, string>()

  function tweaksOf(outcome: PushOutcome): string {
    const known = tweaks.get(outcome)
    if (known !== undefined) return known
    const text = writeJson(outcome.tweaks)
    tweaks.set(outcome, text)
    return text
  }

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

  function described(event: RoomEvent): string | Promise<string> {
    const known = shared.get(event)
    if (known) return known.made ?? known.text
    const text = describe(event)
    const describing: Described = { text, made: undefined, bytes: 2 * event.bytes }
    shared.set(event, describing)
    text.then(
      (made) => {
        describing.made = made
      },
      () => shared.delete(event),
    )
    return text
  }

  async function ofIdOnly(event: RoomEvent, outcome: PushOutcome, to: Addressee, unread: number): Promise<string> {
    const { id: room_id } = await registry.getByNid(event.roomNid)
    const names = inside({ event_id: nameOf(event), room_id, prio: priorityOf(event, outcome) })
    return `{"notification":{${names},${countsOf(unread)},"devices":[{${to.device}}]}}`
  }

  /** @param text what is the same for all */
  function whole(text: string, event: RoomEvent, outcome: PushOutcome, to: Addressee, unread: number): string {
    const isTarget = event.type === 'm.room.member' && event.pdu.state_key === to.userId
    const own = `"prio":"${priorityOf(event, outcome)}"${isTarget ? ',"user_is_target":true' : ''},${countsOf(unread)}`
    return `{"notification":{${text},${own},"devices":[{${to.device},"tweaks":${tweaksOf(outcome)}}]}}`
  }

  return {
    ofEvent(event, outcome, to, unread) {
      if (to.isEventIdOnly) return ofIdOnly(event, outcome, to, unread)
      const text = described(event)
      if (typeof text === 'string') return whole(text, event, outcome, to, unread)
      return text.then((made) => whole(made, event, outcome, to, unread))
    },
    ofCounts: (to, unread) => `{"notification":{"counts":{"unread":${unread}},"devices":[{${to.device}}]}}`,
  }
}

const countsOf = (unread: number): string => `"counts":${unread > 0 ? `{"unread":${unread}}` : '{}'}`

/** Whether a phone is woken at once. Only the phone can tell whether an encrypted event deserves that. */
function priorityOf({ type }: RoomEvent, { highlight, sound }: PushOutcome): 'high' | 'low' {
  return type === 'm.room.encrypted' || highlight || sound !== undefined ? 'high' : 'low'
}
