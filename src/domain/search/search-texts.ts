import { relationOf } from '../../core/event/relation.ts'
import { isEventId } from '../../core/ids.ts'
import { searchedWordsOf } from '../../core/search-words.ts'
import type { Reader } from '../../store/db/db.ts'
import { getAggregations } from '../../store/events/relations.ts'
import { editedBy, type SearchText } from '../../store/events/search.ts'
import type { EventCache } from '../rooms/room/event-cache.ts'
import type { RoomEvent } from '../rooms/room/room-event.ts'
import { editedText, searchedText } from './searched-text.ts'

/** What the index is to hold of some events, and of those that they edit or redact. */
export interface ReadTexts {
  readonly texts: readonly SearchText[]
  /** The numbers of those that have no text, or none any more. */
  readonly gone: readonly number[]
}

export type ReadSearchTexts = (nids: readonly number[]) => Promise<ReadTexts>

export function createReadSearchTexts({
  db,
  events,
}: {
  readonly db: Reader
  readonly events: EventCache
}): ReadSearchTexts {
  /** The text of an event after its edits. */
  async function textOf(event: RoomEvent): Promise<SearchText | undefined> {
    const own = searchedText(event)
    if (own === undefined) return undefined
    const edit = own.kind === 'message' && event.hasRelations ? await newestEdit(event) : undefined
    const newText = edit && editedText(edit)
    const words = searchedWordsOf(newText ?? own.text)
    if (words.length === 0) return undefined
    const editNid = newText === undefined ? undefined : edit?.nid
    return { eventNid: event.nid, roomNid: event.roomNid, kind: own.kind, ts: event.ts, editNid, words }
  }

  async function newestEdit({ id, sender, type, roomNid }: RoomEvent): Promise<RoomEvent | undefined> {
    const wish = { userId: sender, upTo: Number.MAX_SAFE_INTEGER, references: 0, ignored: [] }
    const rows = await getAggregations(db, roomNid, [{ id, editor: sender, type, mayBeRoot: false }], wish)
    const nid = rows.find(({ kind }) => kind === 'm.replace')?.child_nid
    return nid === undefined ? undefined : (await events.load([nid])).get(nid)
  }

  /** What these events redact, and what is searched by the words of an edit that they redact: that edit no longer says of what. */
  async function redactedBy(redactions: readonly RoomEvent[]): Promise<RoomEvent[]> {
    const ids = redactions.flatMap(({ pdu }) => [pdu.redacts, pdu.content.redacts].filter(isEventId))
    if (ids.length === 0) return []
    const redacted = [...(await events.loadByIds(ids)).values()]
    const edits = redacted.filter(({ type }) => type === 'm.room.message').map(({ nid }) => nid)
    return [...redacted, ...(await events.load(await editedBy(db, edits))).values()]
  }

  return async (nids) => {
    const found = [...(await events.load(nids)).values()]
    const edited = found.flatMap(({ content }) => {
      const relation = relationOf(content)
      return relation?.relType === 'm.replace' ? [relation.eventId] : []
    })
    const targets = edited.length === 0 ? [] : [...(await events.loadByIds(edited)).values()]
    const redacted = await redactedBy(found.filter(({ type }) => type === 'm.room.redaction'))
    const texts: SearchText[] = []
    const gone = new Set([...nids, ...redacted.map(({ nid }) => nid)])
    // By number: what memory does not keep is another object each time.
    const all = new Map([...found, ...targets, ...redacted].map((event) => [event.nid, event]))
    for (const event of all.values()) {
      const text = await textOf(event)
      if (text) texts.push(text)
      if (text) gone.delete(event.nid)
    }
    return { texts, gone: [...gone] }
  }
}
