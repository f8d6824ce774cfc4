import { setTimeout as pause } from 'node:timers/promises'
import { ProtocolError } from '../../core/errors.ts'
import type { EventId } from '../../core/ids.ts'
import {
  clearSearch,
  deleteSearchTexts,
  putSearchTexts,
  searchableAfter,
  searchPosition,
  setSearchPosition,
} from '../../store/events/search.ts'
import type { Base } from '../base.ts'
import type { LifecyclePart } from '../lifecycle.ts'
import { MAX_UNINDEXED_EVENTS, SEARCH_BATCH, SEARCH_OVERLAP } from '../limits/search.ts'
import type { EventCache } from '../rooms/room/event-cache.ts'
import type { RoomEvent } from '../rooms/room/room-event.ts'
import { beginAfterStart, restAfterWork } from '../spare-time.ts'
import { createPauseSwitch } from './pause-switch.ts'
import type { SearchDesk, SearchSignals } from './search-signals.ts'
import { createReadSearchTexts } from './search-texts.ts'
import { concernsSearch } from './searched-text.ts'

/** The index as a part that runs, and as operators see it. */
export interface SearchIndex extends LifecyclePart, SearchDesk {
  /** How many numbers of events are still to be looked at; 0 while searching is switched off. */
  behind(): number
}

const PAUSE_AFTER_FAILURE_MS = 1_000

/**
 * Keeps the words of events beside them, in the background.
 *
 * Follows the numbers of events. News of commits saves reading them; after a start, or if too much waits, they are read. An event is
 * indexed by what it says when it is its turn, so that edits and redactions meanwhile count.
 */
export function createSearchIndex(parts: {
  readonly base: Pick<Base, 'config' | 'db' | 'log'>
  readonly roomBase: { readonly events: EventCache; readonly searchSignals: SearchSignals }
  readonly rooms: { position(): number }
}): SearchIndex {
  const { config, db, log } = parts.base
  const { events, searchSignals } = parts.roomBase
  const read = createReadSearchTexts({ db, events })
  /** Numbers of events that wait, and of those that are redacted. */
  let waiting = new Set<number>()
  /** Events of which an edit was redacted. */
  let waitingIds = new Set<EventId>()
  let isBehind = config.search.enabled
  let position = 0
  let running: Promise<void> | undefined
  const closing = new AbortController()
  const pausing = createPauseSwitch(closing.signal, readAgain)
  let isStarted = false
  async function index(nids: readonly number[], upTo: number): Promise<void> {
    const from = performance.now()
    const { texts, gone } = await read(nids)
    await db.tx(async (tx) => {
      await putSearchTexts(tx, texts)
      await deleteSearchTexts(tx, gone)
      await setSearchPosition(tx, Math.max(position, upTo))
    })
    position = Math.max(position, upTo)
    await restAfterWork(performance.now() - from, closing.signal)
  }

  async function catchUp(): Promise<void> {
    isBehind = false
    waiting = new Set()
    for (let at = position; !pausing.isStopped(); ) {
      const { nids, upTo } = await searchableAfter(db.bulk, at, SEARCH_BATCH)
      if (upTo === undefined) return
      await index(nids, upTo)
      at = upTo
    }
  }

  async function follow(): Promise<void> {
    while (!pausing.isStopped()) {
      if (isBehind) await catchUp()
      const ids = [...waitingIds]
      waitingIds = new Set()
      for (const { nid } of (await events.loadByIds(ids)).values()) waiting.add(nid)
      const some = [...waiting].slice(0, SEARCH_BATCH)
      for (const nid of some) waiting.delete(nid)
      if (some.length === 0) return
      await index(some, Math.max(...some))
    }
  }

  function wake(): void {
    if (!isStarted || pausing.isStopped()) return
    running ??= follow()
      .catch(async (err) => {
        if (closing.signal.aborted) return
        log.warn({ err }, 'events could not be indexed for search; they will be read again')
        stepBack()
        await pause(PAUSE_AFTER_FAILURE_MS, undefined, { signal: closing.signal, ref: false }).catch(() => {})
      })
      .finally(() => {
        running = undefined
        if (waiting.size + waitingIds.size > 0 || isBehind) wake()
      })
  }

  function stepBack(): void {
    position = Math.max(0, position - SEARCH_OVERLAP)
    isBehind = true
  }

  function readAgain(): void {
    stepBack()
    wake()
  }

  function add(concerned: readonly RoomEvent[], edited: readonly EventId[]): void {
    if (concerned.length + edited.length === 0) return
    for (const { nid } of concerned) waiting.add(nid)
    for (const eventId of edited) waitingIds.add(eventId)
    if (waiting.size > MAX_UNINDEXED_EVENTS) stepBack()
    wake()
  }

  return {
    name: 'search index',
    async start() {
      if (!config.search.enabled) return
      searchSignals.subscribe({
        committed: (fresh, redacted, edited) => add([...fresh, ...redacted].filter(concernsSearch), edited),
        missed: readAgain,
      })
      position = await searchPosition(db)
      stepBack()
      isStarted = true
      beginAfterStart(wake)
    },
    async stop() {
      closing.abort()
      await running
    },
    async rebuild() {
      mustBeOn(isStarted)
      await db.tx(clearSearch)
      position = 0
      readAgain()
    },
    setPaused: pausing.set,
    isBusy: () => isStarted && !pausing.isPaused && running !== undefined,
    behind: () => (running || isBehind ? Math.max(waiting.size, parts.rooms.position() - position) : 0),
    async progress() {
      mustBeOn(isStarted)
      const newest = Math.max(position, parts.rooms.position())
      return { indexed: position, newest, is_done: running === undefined && !isBehind }
    },
  }
}

function mustBeOn(isStarted: boolean): void {
  if (!isStarted) throw new ProtocolError('M_FORBIDDEN', 'Searching is switched off: see search.enabled.')
}
