import type { FileHandle } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import type { Logger } from 'pino'
import { ProtocolError } from '../../../core/errors.ts'
import type { Database, Tx } from '../../../store/db/db.ts'
import {
  type ArchiveRow,
  archiveFiles,
  countArchives,
  dueArchives,
  endArchive,
  findArchive,
  forgetArchives,
  insertArchive,
  postponeArchive,
  recordArchive,
} from '../../../store/oauth/archives.ts'
import type { Clock, Random } from '../../clock.ts'
import {
  ARCHIVE_EVERY_MS,
  ARCHIVE_KEPT_MS,
  ARCHIVE_RECORDED_BYTES,
  ARCHIVE_RECORDED_MS,
  ARCHIVE_RETRY_MS,
  ARCHIVES_AT_ONCE,
  MAX_ARCHIVE_BYTES,
  MAX_ARCHIVE_DOWNLOADS,
  MAX_ARCHIVE_FAILURES,
  MAX_ARCHIVES,
} from '../../limits/oauth.ts'
import { type ArchivePart, createArchiveContent, FIRST_PART, type OpenMedia } from './archive-content.ts'
import type { ArchiveFiles } from './archive-files.ts'
import type { Owner } from './own-data.ts'

/** How far the archive of a person is. */
export interface ArchiveState {
  readonly isComplete: boolean
  /** Whether it has been tried in vain. */
  readonly isLate: boolean
  /** Of the file, so far. */
  readonly bytes: number
  /** What is being added: the account, keys, messages, or files. */
  readonly part: ArchivePart['kind'] | undefined
  readonly expiresAt: number
}

/** What the server keeps about a person, as a file that is made in the background: a restart continues it where it was. */
export interface Archives {
  /**
   * Asks for an archive. A person has one at a time.
   * @throws ProtocolError `M_LIMIT_EXCEEDED` for a person who has asked lately, and when there are too many
   */
  request(userNid: number): Promise<void>
  /** Undefined if there is none. */
  state(userNid: number): Promise<ArchiveState | undefined>
  /**
   * The complete file, undefined if there is none. The caller calls `done` at the end.
   * @throws ProtocolError `M_LIMIT_EXCEEDED` while too many are being read
   */
  open(userNid: number): Promise<{ readonly stream: Readable; readonly bytes: number; done(): void } | undefined>
  /** Deletes the file, or stops making it. */
  remove(userNid: number): Promise<void>
  /** Makes what was asked for, until `isOver`, and deletes files that have expired. */
  work(isOver: () => boolean): Promise<void>
  /** Calls the listener whenever somebody has asked for an archive. */
  onWake(listener: () => void): void
}

const NAME_BYTES = 24

function tooMany(error: string, retry_after_ms: number): ProtocolError {
  return new ProtocolError('M_LIMIT_EXCEEDED', error, { extra: { retry_after_ms } })
}

export interface ArchiveParts {
  readonly db: Database
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly files: ArchiveFiles
  readonly openMedia: OpenMedia
}

export function createArchives(parts: ArchiveParts): Archives {
  const { db, clock, random, log, files } = parts
  const make = createArchiveMaking(parts)
  const listeners: (() => void)[] = []
  /** Who is downloading: each person once, so that nobody takes the places of others. */
  const downloading = new Set<number>()

  async function current(userNid: number): Promise<ArchiveRow | undefined> {
    const row = await findArchive(db, userNid)
    return row && row.expires_at > clock.now() ? row : undefined
  }

  async function makeOne(row: ArchiveRow, isOver: () => boolean): Promise<void> {
    try {
      await make(row, isOver)
    } catch (err) {
      const isLast = row.failures >= MAX_ARCHIVE_FAILURES
      log.warn({ err }, isLast ? 'an archive of a person was given up' : 'an archive of a person is continued later')
      await db.tx((tx) =>
        isLast
          ? endArchive(tx, row.user_nid, clock.now())
          : postponeArchive(tx, row, clock.now() + ARCHIVE_RETRY_MS * (row.failures + 1)),
      )
    }
  }

  return {
    async request(userNid) {
      if ((await current(userNid)) !== undefined) return
      const now = clock.now()
      if ((await countArchives(db)) >= MAX_ARCHIVES || (await files.size()) >= MAX_ARCHIVE_BYTES) {
        throw tooMany('Too many people have asked for such a file. Try again tomorrow.', ARCHIVE_EVERY_MS)
      }
      const archive = {
        userNid,
        file: `${random.bytes(NAME_BYTES).toString('base64url')}.tar`,
        now,
        firstPart: JSON.stringify(FIRST_PART),
        expiresAt: now + ARCHIVE_KEPT_MS,
      }
      if (!(await db.tx((tx) => insertArchive(tx, archive, now - ARCHIVE_EVERY_MS)))) {
        throw tooMany('You had such a file lately. Ask again a day after you last did.', ARCHIVE_EVERY_MS)
      }
      for (const listener of listeners) listener()
    },

    async state(userNid) {
      const row = await current(userNid)
      if (row === undefined) return undefined
      const next = row.next_part === null ? undefined : (JSON.parse(row.next_part) as ArchivePart)
      const { bytes, failures, expires_at } = row
      return { isComplete: next === undefined, isLate: failures > 0, bytes, part: next?.kind, expiresAt: expires_at }
    },

    async open(userNid) {
      const row = await current(userNid)
      if (row?.next_part !== null) return undefined
      if (downloading.has(userNid)) {
        throw tooMany('You are downloading this file already. Wait for its end, or stop it.', 60_000)
      }
      if (downloading.size >= MAX_ARCHIVE_DOWNLOADS) {
        throw tooMany('Too many such files are being downloaded. Try again in a few minutes.', 60_000)
      }
      downloading.add(userNid)
      const found = await files.read(row.file)
      if (found === undefined) {
        downloading.delete(userNid)
        return undefined
      }
      let isDone = false
      return {
        ...found,
        done() {
          if (!isDone) downloading.delete(userNid)
          isDone = true
        },
      }
    },

    async remove(userNid) {
      const row = await current(userNid)
      if (row === undefined) return
      await db.tx((tx) => endArchive(tx, userNid, clock.now()))
      await files.remove(row.file)
    },

    async work(isOver) {
      await files.keepOnly(await archiveFiles(db, clock.now()))
      for (;;) {
        const due = await dueArchives(db, clock.now(), ARCHIVES_AT_ONCE)
        if (due.length === 0 || isOver()) return
        await Promise.all(due.map((row) => makeOne(row, isOver)))
      }
    },
    onWake: (listener) => void listeners.push(listener),
  }
}

/** Makes an archive from where it is to its end, unless it is over before. */
function createArchiveMaking(parts: ArchiveParts): (row: ArchiveRow, isOver: () => boolean) => Promise<void> {
  const { db, clock, files } = parts
  const partOf = createArchiveContent(parts)

  /** False if nobody wants it any more. */
  async function record(row: ArchiveRow, next: ArchivePart | null, bytes: number): Promise<boolean> {
    const nextPart = next === null ? null : JSON.stringify(next)
    const expiresAt = clock.now() + ARCHIVE_KEPT_MS
    return db.tx((tx) => recordArchive(tx, row, { nextPart, bytes, expiresAt }))
  }

  /** Writes parts until it is time to record how far it is. */
  async function some(file: FileHandle, start: number, owner: Owner, from: ArchivePart) {
    const since = performance.now()
    let part: ArchivePart | null = from
    let bytes = 0
    while (part !== null && bytes < ARCHIVE_RECORDED_BYTES && performance.now() - since < ARCHIVE_RECORDED_MS) {
      const made = await partOf(owner, part)
      for await (const piece of made.pieces) {
        await writeAll(file, piece, start + bytes)
        bytes += piece.length
      }
      part = made.next
    }
    await file.datasync()
    return { next: part, bytes }
  }

  return async (row, isOver) => {
    if (row.next_part === null) return
    const owner = { userNid: row.user_nid, userId: row.user_id }
    let part: ArchivePart | null = JSON.parse(row.next_part) as ArchivePart
    let { bytes } = row
    const file = await files.continue(row.file, bytes)
    try {
      while (part !== null && !isOver()) {
        await files.requireRoom()
        const made = await some(file, bytes, owner, part)
        part = made.next
        bytes += made.bytes
        if (!(await record(row, part, bytes))) return await files.remove(row.file)
      }
    } finally {
      await file.close()
    }
  }
}

async function writeAll(file: FileHandle, piece: Buffer, position: number): Promise<void> {
  for (let done = 0; done < piece.length; ) {
    done += (await file.write(piece, done, piece.length - done, position + done)).bytesWritten
  }
}

export const archiveChores = [
  (tx: Tx, now: number, atMost: number): Promise<number> => forgetArchives(tx, now, now - ARCHIVE_EVERY_MS, atMost),
]
