import type { RoomEvent } from '../room/room-event.ts'
import type { Notice } from './noticing.ts'

/** What an event is to unread counts, if it is more than a message of the main timeline that stands out to nobody. */
export interface UnreadNews extends Notice {
  readonly eventNid: number
  readonly pos: number
  readonly senderNid: number
  /** '' for the main timeline. */
  readonly rootId: string
  /** Whether it counts as unread for all who have the default rules. */
  readonly counts: boolean
}

/** Undefined for most events. */
export function unreadNews(
  event: RoomEvent,
  rootId: string | undefined,
  counts: boolean,
  { noticed, deaf }: Notice,
): UnreadNews | undefined {
  if (!event.isInTimeline || event.isHistory) return undefined
  if (rootId === undefined && noticed.length === 0 && deaf.size === 0) return undefined
  return {
    eventNid: event.nid,
    pos: event.pos,
    senderNid: event.senderNid,
    rootId: rootId ?? '',
    counts,
    noticed,
    deaf,
  }
}
