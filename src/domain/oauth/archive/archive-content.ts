import type { Readable } from 'node:stream'
import { TAR_END, tarHeader, tarPadding } from '../../../core/media/tar.ts'
import type { Database } from '../../../store/db/db.ts'
import type { MediaRow } from '../../../store/media/media.ts'
import { listMediaOf } from '../../../store/media/media-survey.ts'
import { ownEventsFrom, roomFrom } from '../../../store/oauth/own-events.ts'
import { ownBackedUpKeys } from '../../../store/oauth/own-settings.ts'
import type { Clock } from '../../clock.ts'
import {
  ARCHIVE_RECORDED_BYTES,
  BACKED_UP_KEYS_READ_AT_ONCE,
  EVENT_BYTES_READ_AT_ONCE,
  EVENTS_READ_AT_ONCE,
  MEDIA_READ_AT_ONCE,
} from '../../limits/oauth.ts'
import { OWN_FILES, type Owner } from './own-data.ts'

/** Opens a file of the media store. */
export type OpenMedia = (media: MediaRow & { readonly digest: Buffer; readonly bytes: number }) => Promise<Readable>

/** A part of an archive, by where it begins. It is stored while an archive is made. */
export type ArchivePart =
  | { readonly kind: 'account' }
  | {
      readonly kind: 'keys'
      readonly version: number
      readonly roomId: string
      readonly sessionId: string
      readonly file: number
    }
  /** `room`: how many rooms are done. */
  | {
      readonly kind: 'events'
      readonly room: number
      readonly roomNid: number
      readonly after: number
      readonly file: number
    }
  | { readonly kind: 'media'; readonly from: number }

export const FIRST_PART: ArchivePart = { kind: 'account' }

/** The bytes of a part, and the part after it; null after the last one. */
export interface MadePart {
  readonly pieces: AsyncIterable<Buffer>
  readonly next: ArchivePart | null
}

const FIRST_POSITION = Number.MIN_SAFE_INTEGER
const FIRST_EVENTS = { kind: 'events', room: 0, roomNid: 0, after: FIRST_POSITION, file: 0 } as const
const FIRST_KEYS = { kind: 'keys', version: -1, roomId: '', sessionId: '', file: 0 } as const

/**
 * What the server keeps about a person, as an archive of JSON and media (tar), in parts that can be made one by one.
 *
 * @returns makes a part. The rest of an archive does not depend on the parts before
 */
export function createArchiveContent({
  db,
  clock,
  openMedia,
}: {
  readonly db: Database
  readonly clock: Clock
  readonly openMedia: OpenMedia
}): (owner: Owner, part: ArchivePart) => Promise<MadePart> {
  function* file(name: string, content: Buffer): Generator<Buffer> {
    yield tarHeader(name, content.length, Math.floor(clock.now() / 1000))
    yield content
    yield tarPadding(content.length)
  }
  const json = (name: string, value: unknown) => file(name, Buffer.from(JSON.stringify(value, null, 1)))

  async function* account(owner: Owner): AsyncGenerator<Buffer> {
    for (const { name, read } of OWN_FILES) yield* json(name, await read(db, owner))
  }

  async function keys({ userNid }: Owner, part: Extract<ArchivePart, { kind: 'keys' }>): Promise<MadePart> {
    const after = { version: part.version, room_id: part.roomId, session_id: part.sessionId }
    const rows = await ownBackedUpKeys(db, userNid, after, BACKED_UP_KEYS_READ_AT_ONCE)
    const last = rows.at(-1)
    if (last === undefined) return { pieces: nothing(), next: FIRST_EVENTS }
    const content = rows.map((row) => ({ ...row, session_data: parsed(row.session_data) }))
    return {
      pieces: all(json(`backed-up-keys/${part.file}.json`, content)),
      next: {
        kind: 'keys',
        version: last.version,
        roomId: last.room_id,
        sessionId: last.session_id,
        file: part.file + 1,
      },
    }
  }

  /** The events of a room that the person sent, a part of the room at a time. */
  async function events({ userNid }: Owner, part: Extract<ArchivePart, { kind: 'events' }>): Promise<MadePart> {
    const isBegun = part.after !== FIRST_POSITION
    // By number: the person may have come into others meanwhile.
    const roomNid = await roomFrom(db, userNid, isBegun ? part.roomNid : part.roomNid + 1)
    if (roomNid === undefined) return { pieces: nothing(), next: { kind: 'media', from: 0 } }
    const place = isBegun && roomNid === part.roomNid ? part : { ...part, after: FIRST_POSITION, file: 0 }
    const most = { atMost: EVENTS_READ_AT_ONCE, bytes: EVENT_BYTES_READ_AT_ONCE }
    const { last, events: own } = await ownEventsFrom(db, { roomNid, userNid, after: place.after, ...most })
    const done = part.room
    if (last === null) return { pieces: nothing(), next: { ...FIRST_EVENTS, room: done + 1, roomNid } }
    const isFile = own.length > 0
    return {
      pieces: isFile ? all(file(`events/${done}-${place.file}.json`, Buffer.from(`[${own.join(',\n')}]`))) : nothing(),
      next: { kind: 'events', room: done, roomNid, after: last, file: place.file + (isFile ? 1 : 0) },
    }
  }

  async function media({ userNid }: Owner, { from }: Extract<ArchivePart, { kind: 'media' }>): Promise<MadePart> {
    const page = { from, limit: MEDIA_READ_AT_ONCE, isDescending: false }
    const rows = fewest((await listMediaOf(db, userNid, 'created_ts', page)).media)
    if (rows.length === 0) return { pieces: all([TAR_END]), next: null }
    return { pieces: files(rows, from), next: { kind: 'media', from: from + rows.length } }
  }

  async function* files(rows: readonly MediaRow[], from: number): AsyncGenerator<Buffer> {
    yield* json(
      `media/list-${from}.json`,
      rows.map(({ media_id, file_name, content_type, created_at, bytes }) => ({
        ...{ media_id, file_name, content_type, created_at, bytes },
      })),
    )
    for (const row of rows) yield* oneFile(row)
  }

  /** Content that an operator hides, or that is lost, is only in the list. What cannot be read of a file is filled up with zeros. */
  async function* oneFile(row: MediaRow): AsyncGenerator<Buffer> {
    const { digest, bytes, media_id, created_at } = row
    if (digest === null || bytes === null || !row.is_stored || row.quarantined_by !== null) return
    const stream = await openMedia({ ...row, digest, bytes }).catch(() => undefined)
    if (stream === undefined) return
    yield tarHeader(`media/${media_id.replace(/[^\w-]/g, '_').slice(0, 90)}`, bytes, Math.floor(created_at / 1000))
    let left = bytes
    try {
      for await (const chunk of stream as AsyncIterable<Buffer>) {
        const piece = chunk.subarray(0, left)
        left -= piece.length
        yield piece
      }
    } catch {
      // The rest of the archive is whole all the same.
    }
    for (; left > 0; left -= Math.min(left, BLANK.length)) yield BLANK.subarray(0, left)
    yield tarPadding(bytes)
  }

  return async (owner, part) => {
    switch (part.kind) {
      case 'account':
        return { pieces: account(owner), next: FIRST_KEYS }
      case 'keys':
        return keys(owner, part)
      case 'events':
        return events(owner, part)
      case 'media':
        return media(owner, part)
    }
  }
}

/** As many files as make a part: after a failure, a part is made again. */
function fewest(rows: readonly MediaRow[]): readonly MediaRow[] {
  let sum = 0
  const end = rows.findIndex(({ bytes }, index) => {
    sum += bytes ?? 0
    return index > 0 && sum > ARCHIVE_RECORDED_BYTES
  })
  return end === -1 ? rows : rows.slice(0, end)
}

const BLANK = Buffer.alloc(64 * 1024)

const parsed = (text: string): unknown => JSON.parse(text)

async function* all(pieces: Iterable<Buffer>): AsyncGenerator<Buffer> {
  yield* pieces
}

const nothing = (): AsyncGenerator<Buffer> => all([])
