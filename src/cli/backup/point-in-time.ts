import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { ClientConfig } from 'pg'
import type { Config } from '../../config/schema.ts'
import type { SigningKey } from '../../core/signing/key.ts'
import type { BackupStore } from '../../domain/backup/backup-store.ts'
import { listBases, makeBase, openBase, pruneBases } from '../../domain/backup/bases.ts'
import { hasLogPiece, takeLog, whyBrokenSince } from '../../domain/backup/log-pieces.ts'
import type { Progress } from '../../domain/backup/make-backup.ts'
import type { Pace } from '../../domain/backup/pace.ts'
import type { Seal } from '../../domain/backup/seal.ts'
import { LOG_AWAITED_MS } from '../../domain/limits/backups.ts'
import { openBaseCopy, readArchiving, switchWal } from '../../store/backup/base-copy.ts'
import { forgetGap, waitingWal, walOutOf } from '../../store/embedded/wal-archive.ts'
import type { Host } from '../command.ts'
import { postgresDirectory } from '../database.ts'
import { readKeyFiles } from './key-files.ts'

const LOOK_EVERY_MS = 100

/** The log and the files of the embedded Postgres go to the backups, so that a restore can go to any moment. */
export interface PointInTime {
  /** Takes the log up to now to the place. @returns why it leads to no moment from now on until the next copy of the files; undefined if it does */
  takeLog(): Promise<string | undefined>
  /** Copies the files, under the id of a backup, and removes older copies and log. */
  copyFiles(id: string, pace: Pace): Promise<void>
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
  const cluster = join(postgresDirectory(config), 'cluster')
  const folder = walOutOf(cluster)

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
        return 'a part of it could not be put aside, as the place could not be written to or the disk of data_dir was full'
      }
      await takeUpTo(await switchWal(connection))
      const newest = (await listBases(store)).at(-1)
      const base = newest === undefined ? undefined : await openBase(store, newest, undefined)
      if (base?.system_identifier !== systemIdentifier) return 'the place has no copy of the files of this Postgres yet'
      // Whatever the reason is: a time without backup.point_in_time, another place, a piece that somebody removed.
      return whyBrokenSince(store, base)
    },
    async copyFiles(id, pace) {
      // What was lost before does not matter to a copy of now. If there will be none, the hole at the place still tells.
      await forgetGap(folder)
      const copy = await openBaseCopy(connection, cluster)
      try {
        const by = { store, seal, signingKey, serverName: config.server_name, release: host.version, clock: Date }
        const keys = () => readKeyFiles(config.data_dir)
        await makeBase({ ...by, keys, awaitLog: takeUpTo, progress, pace, signal: host.stopSignal() }, copy, id, bytes)
      } finally {
        await copy.close()
      }
      await pruneBases(store)
    },
  }
}
