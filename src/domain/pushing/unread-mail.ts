import type { Config } from '../../config/schema.ts'
import { preferredLanguages } from '../../core/languages.ts'
import { oneLine, type TemplateValues } from '../../core/template.ts'
import { getPushersOf, type PusherRow } from '../../store/accounts/pushers.ts'
import type { Reader } from '../../store/db/db.ts'
import type { Messenger } from '../identity/messenger.ts'
import {
  MAX_EVENTS_FOR_MAIL,
  MAX_MAIL_NAME_CHARS,
  MAX_MAIL_TEXT_CHARS,
  MAX_MESSAGES_IN_MAIL,
  MAX_ROOMS_IN_MAIL,
} from '../limits/mails.ts'
import { publicBaseUrl } from '../public-address.ts'
import { dataOf } from '../pushers/pushers.ts'
import type { Unsubscribing } from '../pushers/unsubscribing.ts'
import type { RoomEvent } from '../rooms/room/room-event.ts'
import type { ReadMissed } from './missed-notices.ts'
import type { Notice } from './notice.ts'
import type { WordsOf } from './room-words.ts'

export interface UnreadMailParts {
  readonly config: Pick<Config, 'public_base_url' | 'listen'>
  readonly db: Reader
  readonly wordsOf: WordsOf
  readonly messenger: Pick<Messenger, 'mail'>
  readonly unsubscribing: Pick<Unsubscribing, 'tokenFor'>
  readonly readMissed: ReadMissed
  /** The event of a notice, if its user has not read it and it is still there. */
  wanted(userNid: number, notice: Notice): RoomEvent | undefined | Promise<RoomEvent | undefined>
}

/** What is unread in one room. */
interface UnreadRoom {
  count: number
  /** The first of them. */
  readonly events: RoomEvent[]
}

/**
 * Makes the mail about what a user has not read between two positions of the stream, and sends it. Says whether there was anything.
 * @throws ProtocolError `M_EMAIL_SEND_ERROR`
 */
export function createUnreadMails(
  parts: UnreadMailParts,
): (row: PusherRow, after: number, upTo: number) => Promise<boolean> {
  const { config, db, wordsOf, messenger, unsubscribing, readMissed, wanted } = parts

  async function collect(row: PusherRow, after: number, upTo: number): Promise<Map<number, UnreadRoom>> {
    const rooms = new Map<number, UnreadRoom>()
    let position = after
    for (let examined = 0; examined < MAX_EVENTS_FOR_MAIL; ) {
      const page = await readMissed(row, position, upTo)
      for (const notice of page.notices) {
        const event = await wanted(row.user_nid, notice)
        if (!event) continue
        const room = rooms.get(event.roomNid) ?? { count: 0, events: [] }
        rooms.set(event.roomNid, room)
        room.count += 1
        if (room.events.length < MAX_MESSAGES_IN_MAIL) room.events.push(event)
      }
      if (!page.isFull) break
      examined += Math.max(1, page.notices.length)
      position = page.upTo
    }
    return rooms
  }

  async function roomValues({ count, events }: UnreadRoom): Promise<TemplateValues> {
    const messages: TemplateValues[] = []
    let name = ''
    for (const event of events) {
      const { roomName, roomAlias, senderName } = await wordsOf(event)
      name = roomName ?? roomAlias ?? ''
      messages.push({ sender: cut(senderName ?? event.sender, MAX_MAIL_NAME_CHARS), ...kindOf(event) })
    }
    const more = count - events.length
    return { room_name: cut(name, MAX_MAIL_NAME_CHARS), messages, more: more > 0 ? String(more) : '' }
  }

  return async (row, after, upTo) => {
    // It may have gone with an address or a session.
    const own = (await getPushersOf(db, row.user_nid)).find(({ pusher_nid }) => pusher_nid === row.pusher_nid)
    if (own?.kind !== 'email' || !own.is_enabled) return false
    const unread = [...(await collect(own, after, upTo)).values()]
    if (unread.length === 0) return false
    const shown = unread.slice(0, MAX_ROOMS_IN_MAIL)
    const token = encodeURIComponent(unsubscribing.tokenFor(own.pusher_nid))
    const { brand } = dataOf(own)
    const values = {
      user_id: own.user_id,
      rooms: await Promise.all(shown.map(roomValues)),
      other_rooms: unread.length > shown.length ? String(unread.length - shown.length) : '',
      link: `${publicBaseUrl(config)}/_matrix/client/unstable/hearth/pushers/unsubscribe?token=${token}`,
    }
    const look = { brand: typeof brand === 'string' ? brand : undefined, languages: preferredLanguages(own.lang) }
    await messenger.mail('unread.mail', own.pushkey, values, look)
    return true
  }
}

/** What a mail says of an event: its text, or what it is. Exactly one value is not empty. */
function kindOf({ type, content }: RoomEvent): TemplateValues {
  const none = { text: '', is_invitation: '', is_encrypted: '', is_other: '' }
  if (type === 'm.room.member') return { ...none, is_invitation: 'yes' }
  if (type === 'm.room.encrypted') return { ...none, is_encrypted: 'yes' }
  const text = typeof content.body === 'string' ? cut(content.body, MAX_MAIL_TEXT_CHARS) : ''
  return text === '' ? { ...none, is_other: 'yes' } : { ...none, text }
}

/** On one line and not too long. */
function cut(text: string, atMost: number): string {
  const line = oneLine(text.slice(0, 4 * atMost))
  const characters = [...line]
  return characters.length > atMost ? `${characters.slice(0, atMost - 1).join('')}…` : line
}
