import { chown, lstat, mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Settings } from './postmaster.ts'

/** Where Postgres puts a copy of each piece of its log, until it is taken to the backups. */
export interface WalArchive {
  readonly folder: string
  /** How Postgres must be started. */
  readonly settings: Settings
}

/** Written in place of what was dropped: because nobody took the pieces away, or the disk was full. */
const GAP = 'gap'
/** Segments of 16 MiB that wait to be taken away. */
const MAX_WAITING = 128
/** A piece is closed after so many seconds, if anything was written. */
const CLOSED_AFTER_SECONDS = 60
const NAME = /^(?:[0-9A-F]{24}(?:\.[0-9A-F]{8}\.backup)?|[0-9A-F]{8}\.history)$/

/**
 * Postgres must not stop for its archive. A command that failed would keep the log where it is until the disk is full, so this one never
 * fails: it drops all that waits, and leaves a mark that says so.
 */
export async function prepareWalArchive(root: string): Promise<WalArchive> {
  const folder = join(root, 'wal-out')
  await mkdir(folder, { recursive: true, mode: 0o700 })
  // Postgres may run as another account, to which all of this was given before.
  const { uid, gid } = await lstat(root)
  await chown(folder, uid, gid)
  const out = shellQuoted(folder)
  const drop = `rm -f ${out}/*; : > ${out}/${GAP}`
  const copy = `cp "%p" ${out}/.%f && sync ${out}/.%f && mv -f ${out}/.%f ${out}/%f`
  const command = `if [ $(ls ${out} | wc -l) -ge ${MAX_WAITING} ]; then ${drop}; fi; { ${copy}; } || { rm -f ${out}/.%f; ${drop}; }; true`
  return {
    folder,
    settings: { archive_mode: 'on', archive_command: command, archive_timeout: `${CLOSED_AFTER_SECONDS}s` },
  }
}

/** In single quotes for a shell, and with its percent signs doubled for Postgres. */
export const shellQuoted = (path: string): string => `'${path.replaceAll("'", `'\\''`).replaceAll('%', '%%')}'`

/** The pieces that wait, oldest first; and whether some were dropped. */
export async function waitingWal(folder: string): Promise<{ readonly names: string[]; readonly hasGap: boolean }> {
  const found = await readdir(folder).catch((): string[] => [])
  return { names: found.filter((name) => NAME.test(name)).sort(), hasGap: found.includes(GAP) }
}

export async function forgetGap(folder: string): Promise<void> {
  await rm(join(folder, GAP), { force: true })
}
