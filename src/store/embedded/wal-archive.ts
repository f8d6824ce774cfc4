import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Settings } from './postmaster.ts'

/** In the directory of the cluster: what waits there goes where the cluster goes, and no other cluster takes it for its own. */
export const WAL_OUT = 'hearth-wal-out'
/** Written in place of what was dropped: because nobody took the pieces away, or the disk was full. */
const GAP = 'gap'
/** Segments of 16 MiB that wait to be taken away. */
const MAX_WAITING = 128
/** A piece is closed after so many seconds, if anything was written. */
const CLOSED_AFTER_SECONDS = 60
const NAME = /^(?:[0-9A-F]{24}(?:\.[0-9A-F]{8}\.backup)?|[0-9A-F]{8}\.history)$/

const DROP = `rm -f ${WAL_OUT}/*; : > ${WAL_OUT}/${GAP}`
const COPY = `cp "%p" ${WAL_OUT}/.%f && sync ${WAL_OUT}/.%f && mv -f ${WAL_OUT}/.%f ${WAL_OUT}/%f`

/**
 * How Postgres is started so that it puts a copy of each piece of its log aside, until it is taken to the backups.
 *
 * Postgres must not stop for its archive. A command that failed would keep the log where it is until the disk is full, so this one never
 * fails: it drops all that waits, and leaves a mark that says so. It runs in the directory of the cluster.
 */
export const ARCHIVE_SETTINGS: Settings = {
  archive_mode: 'on',
  archive_command: `mkdir -p ${WAL_OUT}; if [ $(ls ${WAL_OUT} | wc -l) -ge ${MAX_WAITING} ]; then ${DROP}; fi; { ${COPY}; } || { rm -f ${WAL_OUT}/.%f; ${DROP}; }; true`,
  archive_timeout: `${CLOSED_AFTER_SECONDS}s`,
}

/** In single quotes for a shell, and with its percent signs doubled for Postgres. */
export const shellQuoted = (path: string): string => `'${path.replaceAll("'", `'\\''`).replaceAll('%', '%%')}'`

/** Where the pieces of a cluster wait. */
export const walOutOf = (cluster: string): string => join(cluster, WAL_OUT)

/** The pieces that wait, oldest first; and whether some were dropped. */
export async function waitingWal(folder: string): Promise<{ readonly names: string[]; readonly hasGap: boolean }> {
  const found = await readdir(folder).catch((): string[] => [])
  return { names: found.filter((name) => NAME.test(name)).sort(), hasGap: found.includes(GAP) }
}

export async function forgetGap(folder: string): Promise<void> {
  await rm(join(folder, GAP), { force: true })
}

/** Removes what waits in a cluster that is to put nothing aside any more. */
export async function forgetWaiting(cluster: string): Promise<void> {
  await rm(walOutOf(cluster), { recursive: true, force: true })
}
