import type { Database } from '../../store/db/db.ts'
import { type SearchText, searchableAfter } from '../../store/events/search.ts'
import { SEARCH_BATCH, SEARCH_SLICES, SEARCH_SLICES_CHARS, SEARCH_SLICES_WHILE_NEEDED } from '../limits/search.ts'
import { BETWEEN_SLICES, restAfterWork } from '../spare-time.ts'
import type { ReadSearchTexts, ReadTexts } from './search-texts.ts'

/**
 * Reads what one commit of the index is to write of the events after this number; undefined if there are none. It reads in slices, so that
 * requests have their turn in between; and fewer while they need most of the time.
 */
export type BacklogReader = (after: number) => Promise<(ReadTexts & { readonly upTo: number }) | undefined>

/** The share of time in which the event loop works, from which on requests need all of it. */
const NEEDED_SHARE = 0.5

/** @param signal ends it with a DOMException `AbortError` */
export function createBacklogReader(parts: {
  readonly db: Pick<Database, 'bulk'>
  readonly read: ReadSearchTexts
  readonly signal: AbortSignal
}): BacklogReader {
  const { db, read, signal } = parts
  return async (after) => {
    const found = createFoundTexts()
    const begun = performance.eventLoopUtilization()
    const isNeeded = () => performance.eventLoopUtilization(begun).utilization > NEEDED_SHARE
    let upTo: number | undefined
    for (let slice = 0; slice < SEARCH_SLICES && found.chars < SEARCH_SLICES_CHARS; slice++) {
      if (slice >= SEARCH_SLICES_WHILE_NEEDED && isNeeded()) break
      const from = performance.now()
      const next = await searchableAfter(db.bulk, upTo ?? after, SEARCH_BATCH)
      if (next.upTo === undefined) break
      upTo = next.upTo
      found.add(await read(next.nids))
      await restAfterWork(performance.now() - from, signal, BETWEEN_SLICES)
    }
    return upTo === undefined ? undefined : { ...found.all(), upTo }
  }
}

/** What was found in several reads, of which the last one counts for each event: it may be edited by an event of a later read. */
function createFoundTexts() {
  const byNid = new Map<number, SearchText | undefined>()
  let chars = 0
  return {
    /** Of all words so far. */
    get chars() {
      return chars
    },
    add({ texts, gone }: ReadTexts): void {
      for (const nid of gone) byNid.set(nid, undefined)
      for (const text of texts) {
        byNid.set(text.eventNid, text)
        for (const word of text.words) chars += word.length
      }
    },
    all(): ReadTexts {
      return {
        texts: [...byNid.values()].filter((text) => text !== undefined),
        gone: [...byNid].flatMap(([nid, text]) => (text === undefined ? [nid] : [])),
      }
    },
  }
}
