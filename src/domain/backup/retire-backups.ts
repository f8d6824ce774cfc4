import { timeOfBackup } from '../../core/backup/manifest.ts'
import { type Keep, superseded } from '../../core/backup/retention.ts'
import { folderOf, listBackups, manifestName, mediaName, openBackup, readFile } from './backup-files.ts'
import type { BackupStore } from './backup-store.ts'
import { removeOldJournals } from './journals.ts'
import { mediaIn } from './media-list.ts'
import { PLAIN } from './seal.ts'

/**
 * Removes the backups that a rule does not keep, those that were never completed, and the media that no backup refers to any more.
 *
 * @param newest the backup that was just made: what is not whole and older than it was left by a killed process
 * @returns the ids of the whole backups that were removed
 */
export async function retireBackups(store: BackupStore, newest: string, keep: Keep | undefined): Promise<string[]> {
  const whole = await listBackups(store)
  const old =
    keep === undefined
      ? []
      : superseded(
          whole.map((id) => ({ id, at: timeOfBackup(id)! })),
          keep,
        )
  const halves = await halfBackups(store, newest, new Set(whole))
  for (const id of [...old, ...halves]) await removeBackup(store, id)
  if (old.length + halves.length > 0) await removeLooseMedia(store)
  const [oldest] = await listBackups(store)
  if (oldest !== undefined) await removeOldJournals(store, oldest)
  return old
}

async function halfBackups(store: BackupStore, before: string, whole: ReadonlySet<string>): Promise<string[]> {
  const found = new Set<string>()
  for await (const name of store.list('backups/')) {
    const id = name.split('/')[1] ?? ''
    if (timeOfBackup(id) !== undefined && id < before && !whole.has(id)) found.add(id)
  }
  return [...found]
}

/** The manifest goes first: what a kill or a power loss leaves is no whole backup. */
async function removeBackup(store: BackupStore, id: string): Promise<void> {
  await store.removeLastingly(manifestName(id))
  const names: string[] = []
  for await (const name of store.list(folderOf(id))) names.push(name)
  for (const name of names) await store.remove(name)
}

async function removeLooseMedia(store: BackupStore): Promise<void> {
  const wanted = new Set<string>()
  for (const id of await listBackups(store)) {
    const { media } = await openBackup(store, id)
    const list = (await readFile(store, PLAIN, media.list)).toString('latin1')
    for (const { digest } of mediaIn(list)) wanted.add(mediaName(media.set, digest))
  }
  const loose: string[] = []
  for await (const name of store.list('media/')) if (!wanted.has(name)) loose.push(name)
  for (const name of loose) await store.remove(name)
}
