import type { UserId } from '../ids.ts'
import { isObject } from '../json.ts'
import { CALL_INVITE } from './default-rules.ts'
import type { PushEvent } from './pushed-event.ts'

/** The members to whom the server-default push rules make an event something else than to all. */
export interface StandsOut {
  readonly userIds: readonly UserId[]
  /** Whether it is highlighted for them. Otherwise they are notified, and no more: of a call that they are invited to. */
  readonly highlights: boolean
}

/**
 * The members whom an event mentions, by the server-default push rules: the same as `evaluateDefaults` for each of them, in time linear in
 * the event and those found.
 *
 * @param members the local members of the room
 * @param canNotifyRoom whether the sender's power level reaches `notifications.room`
 */
export function standsOutFor(event: PushEvent, members: ReadonlySet<UserId>, canNotifyRoom: boolean): StandsOut {
  const userIds: UserId[] = []
  for (const userId of mentioned(event, members, canNotifyRoom)) if (userId !== event.sender) userIds.push(userId)
  return { userIds, highlights: event.type.toLowerCase() !== CALL_INVITE }
}

/** Whether an event mentions the whole room. That counts only if its sender may. */
export function mentionsRoom({ content }: Pick<PushEvent, 'content'>): boolean {
  const mentions = content['m.mentions']
  return isObject(mentions) && mentions.room === true
}

function mentioned(event: PushEvent, members: ReadonlySet<UserId>, canNotifyRoom: boolean): Iterable<UserId> {
  const { content } = event
  const type = event.type.toLowerCase()
  // Notices and memberships are silenced before mentions are looked for.
  if (type === 'm.room.member' || isText(content.msgtype, 'm.notice')) return []
  if (type === 'm.room.tombstone' && event.state_key === '') return members
  const mentions = content['m.mentions']
  if (!isObject(mentions)) return []
  if (canNotifyRoom && mentions.room === true) return members
  const userIds = Array.isArray(mentions.user_ids) ? (mentions.user_ids as UserId[]) : []
  return new Set(userIds.filter((userId) => members.has(userId)))
}

function isText(value: unknown, text: string): boolean {
  return typeof value === 'string' && value.toLowerCase() === text
}
