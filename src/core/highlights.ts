import { compileWord } from './glob.ts'
import { localpartOf, type UserId } from './ids.ts'
import { isObject } from './json.ts'
import type { PushEvent } from './push-conditions.ts'
import { indexWords, type WordIndex } from './word-index.ts'

/** A local member of a room. */
export interface Mentionable {
  readonly userId: UserId
  /** Their display name in the room. */
  readonly displayName: string | undefined
}

/** A member found in a text, and by which of the names. */
interface Named {
  readonly userId: UserId
  readonly by: 'display name' | 'localpart'
}

/** An index of a room's local members, for a search in events. It is valid until the members or their display names change. */
export interface MentionIndex {
  readonly userIds: ReadonlySet<UserId>
  readonly inText: WordIndex<Named>
}

/** Prepares members for {@link highlightsFor}. Their names are indexed when the first event needs a search. */
export function indexMentionables(members: readonly Mentionable[]): MentionIndex {
  let names: WordIndex<Named> | undefined
  return {
    userIds: new Set(members.map(({ userId }) => userId)),
    inText: (text) => {
      names ??= indexWords(members.flatMap(namesOf))
      return names(text)
    },
  }
}

function namesOf({ userId, displayName = '' }: Mentionable): [string, Named][] {
  return [
    [displayName, { userId, by: 'display name' }],
    [localpartOf(userId), { userId, by: 'localpart' }],
  ]
}

/**
 * The members whom the server-default push rules highlight an event for: the same as `evaluateDefaults` for each of them,
 * in time linear in the event and those found.
 *
 * @param canNotifyRoom whether the sender's power level reaches `notifications.room`
 */
export function highlightsFor(event: PushEvent, index: MentionIndex, canNotifyRoom: boolean): UserId[] {
  const found = highlighted(event, index, canNotifyRoom)
  return [...found].filter((userId) => userId !== event.sender)
}

function highlighted(event: PushEvent, index: MentionIndex, canNotifyRoom: boolean): Iterable<UserId> {
  const { content } = event
  const type = event.type.toLowerCase()
  // Notices and memberships are silenced before mentions are looked for.
  if (type === 'm.room.member' || isText(content.msgtype, 'm.notice')) return []
  if (type === 'm.room.tombstone' && event.state_key === '') return index.userIds
  if (content['m.mentions'] !== undefined) return listed(event, index, canNotifyRoom)
  if (typeof content.body !== 'string') return []
  if (canNotifyRoom && hasRoomWord(content.body)) return index.userIds
  const named = [...index.inText(content.body)]
  // The rule for localparts comes after those that silence reactions, ACLs and edits.
  const found = isSilencedLate(event, type) ? named.filter(({ by }) => by === 'display name') : named
  return new Set(found.map(({ userId }) => userId))
}

/** `m.mentions`: all of the room, or those listed. */
function listed({ content }: PushEvent, index: MentionIndex, canNotifyRoom: boolean): Iterable<UserId> {
  const mentions = content['m.mentions']
  if (!isObject(mentions)) return []
  if (canNotifyRoom && mentions.room === true) return index.userIds
  const userIds = Array.isArray(mentions.user_ids) ? (mentions.user_ids as UserId[]) : []
  return new Set(userIds.filter((userId) => index.userIds.has(userId)))
}

const hasRoomWord = compileWord('@room')

function isSilencedLate({ content, state_key: stateKey }: PushEvent, type: string): boolean {
  const relation = content['m.relates_to']
  const isEdit = isObject(relation) && relation.rel_type === 'm.replace'
  return isEdit || type === 'm.reaction' || (type === 'm.room.server_acl' && stateKey === '')
}

function isText(value: unknown, text: string): boolean {
  return typeof value === 'string' && value.toLowerCase() === text
}
