import { ProtocolError } from '../../core/errors.ts'
import type { JsonObject } from '../../core/json.ts'
import type { SearchDesk } from '../search/search-signals.ts'
import type { DirectoryIndex } from '../user-directory/directory-index.ts'

/** What the server makes in spare time: the index of messages and the user directory. Migrations are over before it serves. */
export interface BackgroundUpdates {
  isEnabled(): boolean
  /** Until the next restart. While they are stopped, search and the directory find nothing new. */
  setEnabled(isEnabled: boolean): void
  status(): Promise<JsonObject>
  /** @throws ProtocolError `M_INVALID_PARAM` for a job that this server does not know, `M_FORBIDDEN` for one that is switched off */
  start(job: string): Promise<void>
}

export function createBackgroundUpdates({
  search,
  directory,
}: {
  readonly search: SearchDesk
  readonly directory: Pick<DirectoryIndex, 'rebuild' | 'setPaused' | 'isBusy'>
}): BackgroundUpdates {
  let isEnabled = true
  const jobs = new Map([
    ['regenerate_directory', directory],
    ['rebuild_search', search],
  ])

  return {
    isEnabled: () => isEnabled,
    setEnabled(enabled) {
      isEnabled = enabled
      for (const index of jobs.values()) index.setPaused(!enabled)
    },
    async status() {
      const current: Record<string, JsonObject> = {}
      if (search.isBusy()) {
        const { indexed } = await search.progress()
        current.search = { name: 'rebuild_search', total_item_count: indexed }
      }
      if (directory.isBusy()) current.directory = { name: 'regenerate_directory' }
      return { enabled: isEnabled, current_updates: current }
    },
    async start(job) {
      // Counts of rooms are never kept, so there is nothing to make again.
      if (job === 'populate_stats_process_rooms') return
      const index = jobs.get(job)
      if (index) return index.rebuild()
      throw new ProtocolError(
        'M_INVALID_PARAM',
        `There is no such job. These are known: ${[...jobs.keys()].join(', ')}.`,
      )
    },
  }
}
