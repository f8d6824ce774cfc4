import { redo } from '../../store/backup/redo.ts'
import { beginEpoch, readPlace } from '../../store/backup/restore-epochs.ts'
import { skipNumbers } from '../../store/backup/skip-numbers.ts'
import type { Undone } from '../../store/backup/undone.ts'
import type { Database } from '../../store/db/db.ts'
import { listStored } from '../../store/media/media.ts'
import type { Random } from '../clock.ts'
import { BACKUP_MEDIA_AT_ONCE } from '../limits/backups.ts'
import type { MediaStore } from '../media/media-store.ts'
import type { Spool } from '../media/spool.ts'
import { mediaName } from './backup-files.ts'
import { mapInParallel } from './in-parallel.ts'
import { DamageError, newEpoch, openedBy, type RestoreParts } from './restore-backup.ts'

/** Begins an epoch in a database that went back to a moment, as at the end of a restore. Gives when its newest event is of. */
export async function beginAfterRecovery(parts: {
  readonly db: Database
  readonly serverName: string
  /** Sessions and devices that ended since. The rest is as it was at that moment, which somebody wants back. */
  readonly ended: readonly Undone[]
  readonly now: number
  readonly random: Random
}): Promise<{ readonly last: number | undefined }> {
  const { db, serverName, ended, now, random } = parts
  const place = await readPlace(db)
  if (place.name !== serverName) throw new Error(`the database is that of "${place.name}", not of "${serverName}"`)
  const { eventPosition, ledgerPosition, last } = place
  await db.tx(async (tx) => {
    await skipNumbers(tx)
    const epoch = { epoch: newEpoch(random), now, serverName, eventPosition, ledgerPosition }
    await beginEpoch((text, values) => tx.query(text, values), epoch)
    await redo(tx, ended, { now, eventPosition })
  })
  return { last }
}

/** Brings back the media that the database names and the store lacks. Gives how many are not at the place, or are damaged there. */
export async function bringMediaBack(
  parts: Pick<RestoreParts, 'store' | 'unseal' | 'signal' | 'progress'> & {
    readonly db: Database
    readonly media: MediaStore
    readonly spool: Spool
  },
  set: string,
): Promise<number> {
  const { db, store, unseal, media, spool, signal, progress } = parts
  const rows = await listStored(db)
  const of = rows.reduce((sum, { bytes }) => sum + bytes, 0)
  let [missing, done] = [0, 0]
  await mapInParallel(rows, BACKUP_MEDIA_AT_ONCE, async ({ digest, bytes }) => {
    signal.throwIfAborted()
    if (!(await bringBack(digest, bytes))) missing++
    done += bytes
    progress('media', done, of)
  })
  return missing

  async function bringBack(digest: Buffer, bytes: number): Promise<boolean> {
    const present = await media.open(digest)
    if (present !== undefined) {
      present.destroy()
      return true
    }
    const source = await store.open(mediaName(set, digest.toString('hex')))
    if (source === undefined) return false
    const opened = openedBy(unseal, source as AsyncIterable<Buffer>)
    // One damaged file does not keep all the rest away.
    const file = await spool.take(opened, Number.MAX_SAFE_INTEGER, bytes).catch((error: unknown) => {
      if (!(error instanceof DamageError)) throw error
      return undefined
    })
    if (file === undefined) return false
    try {
      const isWhole = file.digest.equals(digest)
      if (isWhole) await media.put(file)
      return isWhole
    } finally {
      await file.discard()
    }
  }
}
