import { topicOf } from '../../core/event/content.ts'
import { isEdit, relationOf } from '../../core/event/relation.ts'
import { isObject } from '../../core/json.ts'
import type { SearchKind } from '../../store/events/search.ts'
import type { RoomEvent } from '../rooms/room/room-event.ts'

/** What is searched of an event: of a message its body, of a room its name or topic (client-server API, "Server Side Search"). */
export interface SearchedText {
  readonly kind: SearchKind
  readonly text: string
}

/** The text of an event by itself; undefined if it has none, and for edits, whose text is that of the event they edit. */
export function searchedText(event: RoomEvent): SearchedText | undefined {
  if (!event.isInTimeline || event.redactedBy !== undefined) return undefined
  const { type, content } = event
  if (type === 'm.room.message' && !event.isState) {
    if (relationOf(content)?.relType === 'm.replace') return undefined
    return typeof content.body === 'string' ? { kind: 'message', text: content.body } : undefined
  }
  if (!event.isState || event.pdu.state_key !== '') return undefined
  if (type === 'm.room.name') return typeof content.name === 'string' ? { kind: 'name', text: content.name } : undefined
  const topic = type === 'm.room.topic' ? topicOf(event) : undefined
  return topic === undefined ? undefined : { kind: 'topic', text: topic }
}

/** The text that an edit gives to the event that it edits. */
export function editedText(edit: RoomEvent): string | undefined {
  const content = edit.content['m.new_content']
  return isEdit(edit) && isObject(content) && typeof content.body === 'string' ? content.body : undefined
}

/** Whether the text of some event may change with this one. */
export function concernsSearch({ type, isState }: RoomEvent): boolean {
  if (type === 'm.room.message') return !isState
  return isState && (type === 'm.room.name' || type === 'm.room.topic')
}
