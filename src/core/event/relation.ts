import { type EventId, isEventId } from '../ids.ts'
import { isObject, type JsonObject, type JsonValue } from '../json.ts'

/** How an event relates to another: its `m.relates_to` (client-server API, "Relationships between events"). */
export interface Relation {
  /** `m.thread`, `m.replace`, `m.annotation`, `m.reference`, or any other text of 1 to 255 characters without U+0000. */
  readonly relType: string
  /** The event that it relates to, which may not exist. */
  readonly eventId: EventId
  /** The key of an annotation. */
  readonly key: string | undefined
}

const MAX_REL_TYPE_CHARS = 255

/** Postgres cannot hold U+0000 in a text. */
const isText = (value: JsonValue | undefined): value is string => typeof value === 'string' && !value.includes('\0')

/** The relation in an event's content; undefined if there is none, or a malformed one. */
export function relationOf(content: JsonObject): Relation | undefined {
  const relation = content['m.relates_to']
  if (!isObject(relation)) return undefined
  const { rel_type: relType, event_id: eventId, key } = relation
  if (!isText(relType) || relType === '' || relType.length > MAX_REL_TYPE_CHARS) return undefined
  if (!isEventId(eventId)) return undefined
  return { relType, eventId, key: relType === 'm.annotation' && isText(key) ? key : undefined }
}

/**
 * Whether an event has what an edit needs of its own (client-server API, "Event replacements"). That its target has the same sender and type,
 * and is no state event and no edit itself, is for its readers to check. Of an encrypted event nobody else can see the new content.
 */
export function isEdit(event: {
  readonly type: string
  readonly isState: boolean
  readonly content: JsonObject
}): boolean {
  if (event.isState || relationOf(event.content)?.relType !== 'm.replace') return false
  return event.type === 'm.room.encrypted' || isObject(event.content['m.new_content'])
}
