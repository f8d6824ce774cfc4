import { setTimeout as pause } from 'node:timers/promises'
import { ProtocolError } from '../../core/errors.ts'
import type { EventId } from '../../core/ids.ts'
import {
  clearSearch,
  deleteSearchTexts,
  putSearchTexts,
  searchPosition,
  setSearchPosition,
} from '../../store/events/search.ts'
import type { Base } from '../base.ts'
import type { LifecyclePart } from '../lifecycle.ts'
import { MAX_UNINDEXED_EVENTS, SEARCH_BATCH, SEARCH_OVERLAP } from '../limits/search.ts'
import type { EventCache } from '../rooms/room/event-cache.ts'
import type { RoomEvent } from '../rooms/room/room-event.ts'
import { beginAfterStart, IN_NO_HURRY, restAfterWork } from '../spare-time.ts'
import { createBacklogReader } from './backlog-reader.ts'
import { IndexBacklog } from './index-backlog.ts'
import { createPauseSwitch } from './pause-switch.ts'
import type { SearchDesk, SearchSignals } from './search-signals.ts'
import { createReadSearchTexts, type ReadTexts } from './search-texts.ts'
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
  /** Of what comes, and of what is redacted. */
  const backlog = new IndexBacklog({ overlap: SEARCH_OVERLAP, most: MAX_UNINDEXED_EVENTS })
  /** Events of which an edit was redacted. */
  let waitingIds = new Set<EventId>()
  let running: Promise<void> | undefined
  const closing = new AbortController()
  const readBacklog = createBacklogReader({ db, read, signal: closing.signal })
  const pausing = createPauseSwitch(closing.signal, readAgain)
  let isStarted = false

  async function write({ texts, gone }: ReadTexts, upTo: number): Promise<void> {
    await db.tx(async (tx) => {
      // In pieces, as the statement for many texts takes long to write down.
      for (let at = 0; at < texts.length; at += SEARCH_BATCH)
        await putSearchTexts(tx, texts.slice(at, at + SEARCH_BATCH))
      await deleteSearchTexts(tx, gone)
      await setSearchPosition(tx, backlog.positionAfter(upTo))
    })
    backlog.advance(upTo)
  }

  async function catchUp(): Promise<void> {
    for (let at = 0; !pausing.isStopped(); ) {
      at = backlog.continueFrom(at)
      const next = await readBacklog(at)
      if (next === undefined) return
      const from = performance.now()
      await write(next, next.upTo)
      await restAfterWork(performance.now() - from, closing.signal, IN_NO_HURRY)
      at = next.upTo
    }
  }

  async function follow(): Promise<void> {
    while (!pausing.isStopped()) {
      if (backlog.isBehind) {
        await catchUp()
        // If a pause cut it short, the position must stay where it is.
        continue
      }
      const ids = [...waitingIds]
      waitingIds = new Set()
      for (const { nid } of (await events.loadByIds(ids)).values()) backlog.add(nid)
      const some = backlog.take(SEARCH_BATCH)
      if (some.length === 0) return
      const from = performance.now()
      await write(await read(some), Math.max(...some))
      await restAfterWork(performance.now() - from, closing.signal, IN_NO_HURRY)
    }
  }

  function wake(): void {
    if (!isStarted || pausing.isStopped()) return
    running ??= follow()
      .catch(async (err) => {
        if (closing.signal.aborted) return
        log.warn({ err }, 'events could not be indexed for search; they will be read again')
        backlog.stepBack()
        await pause(PAUSE_AFTER_FAILURE_MS, undefined, { signal: closing.signal, ref: false }).catch(() => {})
      })
      .finally(() => {
        running = undefined
        if (waitingIds.size > 0 || !backlog.isEmpty) wake()
      })
  }

  function readAgain(): void {
    backlog.stepBack()
    wake()
  }

  function add(concerned: readonly RoomEvent[], edited: readonly EventId[]): void {
    if (concerned.length + edited.length === 0) return
    for (const { nid } of concerned) backlog.add(nid)
    for (const eventId of edited) waitingIds.add(eventId)
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
      backlog.position = await searchPosition(db)
      backlog.stepBack()
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
      backlog.readFrom(0)
      wake()
    },
    setPaused: pausing.set,
    isBusy: () => isStarted && !pausing.isPaused && running !== undefined,
    behind: () =>
      running || backlog.isBehind ? Math.max(backlog.waiting, parts.rooms.position() - backlog.reached) : 0,
    async progress() {
      mustBeOn(isStarted)
      const { reached: indexed, isBehind } = backlog
      return { indexed, newest: Math.max(indexed, parts.rooms.position()), is_done: running === undefined && !isBehind }
    },
  }
}

function mustBeOn(isStarted: boolean): void {
  if (!isStarted) throw new ProtocolError('M_FORBIDDEN', 'Searching is switched off: see search.enabled.')
}
