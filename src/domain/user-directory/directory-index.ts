import { setTimeout as pause } from 'node:timers/promises'
import { ProtocolError } from '../../core/errors.ts'
import type { Database } from '../../store/db/db.ts'
import { holdDirectory, localProfiles, putDirectoryUsers } from '../../store/user-directory/directory-users.ts'
import { directoryEventsAfter, directoryPosition, setDirectoryPosition } from '../../store/user-directory/open-rooms.ts'
import type { Base } from '../base.ts'
import type { LifecyclePart } from '../lifecycle.ts'
import { DIRECTORY_BATCH, DIRECTORY_OVERLAP, MAX_WAITING_DIRECTORY_EVENTS } from '../limits/user-directory.ts'
import type { EventCache } from '../rooms/room/event-cache.ts'
import type { RoomRegistry } from '../rooms/room/registry.ts'
import { IndexBacklog } from '../search/index-backlog.ts'
import { createPauseSwitch, type PauseSwitch } from '../search/pause-switch.ts'
import type { PausableIndex, SearchSignals } from '../search/search-signals.ts'
import { beginAfterStart, restAfterWork } from '../spare-time.ts'
import { concernsDirectory, createDirectoryEntries } from './directory-entries.ts'
import { localEntry } from './local-entries.ts'

const PAUSE_AFTER_FAILURE_MS = 1_000

/** The directory as a part that runs, and as operators see it. */
export interface DirectoryIndex extends LifecyclePart, PausableIndex {}

/**
 * Keeps in the background who is found by which words, and which rooms are open. Follows the numbers of events. News of commits saves
 * reading them; after a start, or if too much waits, they are read. The first start enters everyone.
 */
export function createDirectoryIndex(parts: {
  readonly base: Pick<Base, 'config' | 'db' | 'log'>
  readonly roomBase: {
    readonly events: EventCache
    readonly registry: RoomRegistry
    readonly searchSignals: SearchSignals
  }
}): DirectoryIndex {
  const { config, db, log } = parts.base
  const { events, registry, searchSignals } = parts.roomBase
  const read = createDirectoryEntries({ db, serverName: config.server_name, events, registry })
  const backlog = new IndexBacklog({ overlap: DIRECTORY_OVERLAP, most: MAX_WAITING_DIRECTORY_EVENTS })
  let isStarted = false
  let running: Promise<void> | undefined
  const closing = new AbortController()
  const pausing = createPauseSwitch(closing.signal, () => {
    backlog.stepBack()
    wake()
  })

  async function enter(nids: readonly number[], upTo: number): Promise<void> {
    const from = performance.now()
    const write = await read(nids)
    await db.tx(async (tx) => {
      await write(tx)
      await setDirectoryPosition(tx, Math.max(backlog.position, upTo))
    })
    backlog.advance(upTo)
    await restAfterWork(performance.now() - from, closing.signal)
  }

  async function catchUp(): Promise<void> {
    if (backlog.isAnew) await enterAccounts(db, pausing, closing.signal)
    for (let at = 0; !pausing.isStopped(); ) {
      at = backlog.continueFrom(at)
      const { nids, upTo } = await directoryEventsAfter(db.bulk, at, DIRECTORY_BATCH)
      if (upTo === undefined) return
      await enter(nids, upTo)
      at = upTo
    }
  }

  async function follow(): Promise<void> {
    while (!pausing.isStopped()) {
      if (backlog.isBehind) {
        await catchUp()
        // If a pause cut it short, the position must stay where it is.
        continue
      }
      const some = backlog.take(DIRECTORY_BATCH)
      if (some.length === 0) return
      await enter(some, Math.max(...some))
    }
  }

  function wake(): void {
    if (!isStarted || pausing.isStopped()) return
    running ??= follow()
      .catch(async (err) => {
        if (closing.signal.aborted) return
        log.warn({ err }, 'the user directory could not follow the rooms; it reads their events again')
        backlog.stepBack()
        await pause(PAUSE_AFTER_FAILURE_MS, undefined, { signal: closing.signal, ref: false }).catch(() => {})
      })
      .finally(() => {
        running = undefined
        if (!backlog.isEmpty) wake()
      })
  }

  return {
    name: 'user directory',
    async start() {
      if (!config.user_directory.enabled) return
      isStarted = true
      backlog.position = await directoryPosition(db)
      backlog.stepBack()
      searchSignals.subscribe({
        committed(fresh) {
          const concerned = fresh.filter(concernsDirectory)
          if (concerned.length === 0) return
          for (const { nid } of concerned) backlog.add(nid)
          wake()
        },
        missed() {
          backlog.stepBack()
          wake()
        },
      })
      beginAfterStart(wake)
    },
    async stop() {
      closing.abort()
      await running
    },
    async rebuild() {
      if (!isStarted) {
        throw new ProtocolError('M_FORBIDDEN', 'The user directory is switched off: see user_directory.enabled.')
      }
      await db.tx((tx) => setDirectoryPosition(tx, 0))
      backlog.readFrom(0)
      wake()
    },
    setPaused: pausing.set,
    isBusy: () => isStarted && !pausing.isPaused && running !== undefined,
  }
}

/** The accounts from before there was a directory. */
async function enterAccounts(db: Database, pausing: PauseSwitch, signal: AbortSignal): Promise<void> {
  for (let after = 0; !pausing.isStopped(); ) {
    const from = performance.now()
    const some = await db.tx(async (tx) => {
      // Somebody who takes another name meanwhile is to have that.
      await holdDirectory(tx)
      const profiles = await localProfiles(tx, { after, limit: DIRECTORY_BATCH })
      await putDirectoryUsers(tx, profiles.map(localEntry))
      return profiles
    })
    const last = some.at(-1)
    if (last === undefined) return
    after = last.user_nid
    await restAfterWork(performance.now() - from, signal)
  }
}
