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

/** The local members of a room, ready to be looked for in events. Valid as long as they and their display names are. */
export interface MentionIndex {
  readonly userIds: ReadonlySet<UserId>
  readonly byDisplayName: WordIndex<UserId>
  readonly byLocalpart: WordIndex<UserId>
}

/** Prepares members for {@link highlightsFor}. Their names are indexed only when an event has to be searched for them. */
export function indexMentionables(members: readonly Mentionable[]): MentionIndex {
  return {
    userIds: new Set(members.map(({ userId }) => userId)),
    byDisplayName: onDemand(() => indexWords(members.map(({ displayName, userId }) => [displayName ?? '', userId]))),
    byLocalpart: onDemand(() => indexWords(members.map(({ userId }) => [localpartOf(userId), userId]))),
  }
}

function onDemand<T>(build: () => WordIndex<T>): WordIndex<T> {
  let index: WordIndex<T> | undefined
  return (text) => {
    index ??= build()
    return index(text)
  }
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
  const named = index.byDisplayName(content.body)
  // The rule for localparts comes after those that silence reactions, ACLs and edits.
  return isSilencedLate(event, type) ? named : new Set([...named, ...index.byLocalpart(content.body)])
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
