import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { ClientConfig } from 'pg'
import type { Config } from '../../config/schema.ts'
import type { SigningKey } from '../../core/signing/key.ts'
import type { BackupStore } from '../../domain/backup/backup-store.ts'
import { makeBase, pruneBases } from '../../domain/backup/bases.ts'
import { hasLogPiece, takeLog } from '../../domain/backup/log-pieces.ts'
import type { Progress } from '../../domain/backup/make-backup.ts'
import type { Seal } from '../../domain/backup/seal.ts'
import { LOG_AWAITED_MS } from '../../domain/limits/backups.ts'
import { openBaseCopy, readArchiving, switchWal } from '../../store/backup/base-copy.ts'
import { forgetGap, prepareWalArchive, waitingWal } from '../../store/embedded/wal-archive.ts'
import type { Host } from '../command.ts'
import { postgresDirectory } from '../database.ts'
import { readKeyFiles } from './key-files.ts'

const LOOK_EVERY_MS = 100

/** The log and the files of the embedded Postgres go to the backups, so that a restore can go to any moment. */
export interface PointInTime {
  /** Takes the log up to now to the place. @returns false if a part of it is lost, so that there is a gap until the next copy of the files */
  takeLog(): Promise<boolean>
  /** Copies the files, under the id of a backup, and removes older copies and log. */
  copyFiles(id: string): Promise<void>
}

/** Undefined where it is not configured. @throws Error if Postgres was started without it */
export async function openPointInTime(parts: {
  readonly host: Host
  readonly config: Config
  readonly store: BackupStore
  readonly seal: Seal
  readonly signingKey: SigningKey
  readonly connection: ClientConfig
  readonly progress: Progress
}): Promise<PointInTime | undefined> {
  const { host, config, store, seal, signingKey, connection, progress } = parts
  if (!config.backup.point_in_time) return undefined
  const { isOn, systemIdentifier, bytes } = await readArchiving(connection)
  if (!isOn)
    throw new Error('the running Postgres was started before backup.point_in_time was set: start the server again')
  const { folder } = await prepareWalArchive(postgresDirectory(config))

  async function takeWaiting(): Promise<void> {
    const { names } = await waitingWal(folder)
    await takeLog({ store, seal, key: signingKey }, systemIdentifier, folder, names)
  }

  /** Another process may take it to the place first. */
  async function takeUpTo(last: string): Promise<void> {
    const deadline = performance.now() + LOG_AWAITED_MS
    for (;;) {
      const { names, hasGap } = await waitingWal(folder)
      // Before it looks for the last piece: one before that may be among those that were dropped.
      if (hasGap) throw new Error('the log of Postgres could not be put aside: is the disk of data_dir full?')
      if (names.includes(last) || (await hasLogPiece(store, systemIdentifier, last))) return takeWaiting()
      if (performance.now() > deadline)
        throw new Error(`Postgres did not put aside the piece ${last} of its log within ${LOG_AWAITED_MS / 1000} s`)
      await pause(LOOK_EVERY_MS)
    }
  }

  return {
    async takeLog() {
      const { hasGap } = await waitingWal(folder)
      if (hasGap) {
        await takeWaiting()
        return false
      }
      await takeUpTo(await switchWal(connection))
      return true
    },
    async copyFiles(id) {
      // What was lost before does not matter to a copy of now.
      await forgetGap(folder)
      const copy = await openBaseCopy(connection, join(postgresDirectory(config), 'cluster'))
      try {
        const by = { store, seal, signingKey, serverName: config.server_name, release: host.version, clock: Date }
        const keys = () => readKeyFiles(config.data_dir)
        await makeBase({ ...by, keys, awaitLog: takeUpTo, progress, signal: host.stopSignal() }, copy, id, bytes)
      } finally {
        await copy.close()
      }
      await pruneBases(store)
    },
  }
}
