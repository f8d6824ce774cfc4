import { setTimeout as pause } from 'node:timers/promises'
import { localProfiles, putDirectoryUsers } from '../../store/user-directory/directory-users.ts'
import { directoryEventsAfter, directoryPosition, setDirectoryPosition } from '../../store/user-directory/open-rooms.ts'
import type { Base } from '../base.ts'
import type { LifecyclePart } from '../lifecycle.ts'
import { DIRECTORY_BATCH, DIRECTORY_OVERLAP, MAX_WAITING_DIRECTORY_EVENTS } from '../limits/user-directory.ts'
import type { EventCache } from '../rooms/room/event-cache.ts'
import type { RoomRegistry } from '../rooms/room/registry.ts'
import type { SearchSignals } from '../search/search-signals.ts'
import { restAfterWork } from '../spare-time.ts'
import { concernsDirectory, createDirectoryEntries } from './directory-entries.ts'
import { localEntry } from './local-entries.ts'

const PAUSE_AFTER_FAILURE_MS = 1_000

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
}): LifecyclePart {
  const { config, db, log } = parts.base
  const { events, registry, searchSignals } = parts.roomBase
  const read = createDirectoryEntries({ db, serverName: config.server_name, events, registry })
  let waiting = new Set<number>()
  let isBehind = true
  let position = 0
  let running: Promise<void> | undefined
  const closing = new AbortController()

  async function enter(nids: readonly number[], upTo: number): Promise<void> {
    const from = performance.now()
    const write = await read(nids)
    await db.tx(async (tx) => {
      await write(tx)
      await setDirectoryPosition(tx, Math.max(position, upTo))
    })
    position = Math.max(position, upTo)
    await restAfterWork(performance.now() - from, closing.signal)
  }

  /** The accounts from before there was a directory. */
  async function enterAccounts(): Promise<void> {
    for (let after = 0; !closing.signal.aborted; ) {
      const some = await localProfiles(db.bulk, { after, limit: DIRECTORY_BATCH })
      if (some.length === 0) return
      const from = performance.now()
      await db.tx((tx) => putDirectoryUsers(tx, some.map(localEntry)))
      after = some.at(-1)!.user_nid
      await restAfterWork(performance.now() - from, closing.signal)
    }
  }

  async function catchUp(): Promise<void> {
    isBehind = false
    waiting = new Set()
    if (position === 0) await enterAccounts()
    for (let at = position; !closing.signal.aborted; ) {
      const { nids, upTo } = await directoryEventsAfter(db.bulk, at, DIRECTORY_BATCH)
      if (upTo === undefined) return
      await enter(nids, upTo)
      at = upTo
    }
  }

  async function follow(): Promise<void> {
    while (!closing.signal.aborted) {
      if (isBehind) await catchUp()
      const some = [...waiting].slice(0, DIRECTORY_BATCH)
      if (some.length === 0) return
      for (const nid of some) waiting.delete(nid)
      await enter(some, Math.max(...some))
    }
  }

  function stepBack(): void {
    position = Math.max(0, position - DIRECTORY_OVERLAP)
    isBehind = true
  }

  function wake(): void {
    if (closing.signal.aborted) return
    running ??= follow()
      .catch(async (err) => {
        if (closing.signal.aborted) return
        log.warn({ err }, 'the user directory could not follow the rooms; it reads their events again')
        stepBack()
        await pause(PAUSE_AFTER_FAILURE_MS, undefined, { signal: closing.signal, ref: false }).catch(() => {})
      })
      .finally(() => {
        running = undefined
        if (waiting.size > 0 || isBehind) wake()
      })
  }

  return {
    name: 'user directory',
    async start() {
      if (!config.user_directory.enabled) return
      position = await directoryPosition(db)
      stepBack()
      searchSignals.subscribe({
        committed(fresh) {
          const concerned = fresh.filter(concernsDirectory)
          if (concerned.length === 0) return
          for (const { nid } of concerned) waiting.add(nid)
          if (waiting.size > MAX_WAITING_DIRECTORY_EVENTS) stepBack()
          wake()
        },
        missed() {
          stepBack()
          wake()
        },
      })
      wake()
    },
    async stop() {
      closing.abort()
      await running
    },
  }
}
