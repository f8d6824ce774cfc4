import type { Config } from '../../config/schema.ts'
import { ProtocolError } from '../../core/errors.ts'
import type { RoomId, UserId } from '../../core/ids.ts'
import type { JsonObject } from '../../core/json.ts'
import { type Mxc, readMxc, writeMxc } from '../../core/mxc.ts'
import { userIdsOf } from '../../store/accounts/users.ts'
import type { Database } from '../../store/db/db.ts'
import { wholeTables } from '../../store/db/whole-tables.ts'
import { findMedia, type MediaRow } from '../../store/media/media.ts'
import {
  findMediaNids,
  listMediaOf,
  listQuarantineChanges,
  type MediaOrder,
  mediaNidsOf,
  mxcsInRoom,
  oldLocalMedia,
  type Page,
  quarantine,
  setProtected,
  surveyUsage,
  type UsageOrder,
  unquarantine,
} from '../../store/media/media-survey.ts'
import { avatarUris, deleteMedia } from '../../store/media/media-sweep.ts'
import { findRoomNid } from '../../store/rooms/rooms.ts'
import { localAccount } from '../admin/local-account.ts'
import type { Clock } from '../clock.ts'
import { MAX_MEDIA_SWEPT_AT_ONCE } from '../limits.ts'
import type { Sweep } from './sweep.ts'

/** What was removed. */
export interface Removed {
  readonly deleted_media: readonly string[]
  readonly total: number
}

/** Media, for operators. Functions throw `M_NOT_FOUND` for unknown media, rooms and accounts. */
export interface MediaDesk {
  get(mxc: Mxc): Promise<JsonObject>
  listOf(userId: UserId, order: MediaOrder, page: Page): Promise<JsonObject>
  /** The sum of users' uploads. */
  usage(
    query: {
      readonly term: string | undefined
      readonly after: number | undefined
      readonly until: number | undefined
    },
    order: UsageOrder,
    page: Page,
  ): Promise<JsonObject>
  /** The media in the events of a room. */
  inRoom(roomId: RoomId): Promise<{ readonly local: readonly string[]; readonly remote: readonly string[] }>
  /** Quarantines media, and all other media with the same content. Returns how many that is. */
  quarantine(mxc: Mxc, by: string): Promise<number>
  quarantineOf(userId: UserId, by: string): Promise<number>
  quarantineInRoom(roomId: RoomId, by: string): Promise<number>
  unquarantine(mxc: Mxc): Promise<void>
  /** What was hidden and shown after a change, oldest first, a hundred at a time. */
  quarantineChanges(after: number): Promise<JsonObject>
  /** Protects media from being quarantined with others, and from being removed for its age. */
  protect(mxc: Mxc, isProtected: boolean): Promise<void>
  delete(mxc: Mxc): Promise<Removed>
  /** Deletes what `listOf` shows. */
  deleteOf(userId: UserId, order: MediaOrder, page: Page): Promise<Removed>
  /** Local media that nobody viewed since a time, and that is larger than this many bytes. */
  deleteOld(wanted: {
    readonly before: number
    readonly above: number
    readonly keepAvatars: boolean
  }): Promise<Removed>
  /** Deletes remote media that nobody viewed since a time. Returns how many. */
  purgeRemote(before: number): Promise<number>
}

const QUARANTINE_CHANGES_SHOWN = 100

export function createMediaDesk(deps: {
  readonly config: Pick<Config, 'server_name'>
  readonly db: Database
  readonly clock: Clock
  readonly sweep: Sweep
}): MediaDesk {
  const { config, db, clock, sweep } = deps
  const server = config.server_name

  async function found({ server, mediaId }: Mxc): Promise<MediaRow> {
    const row = await findMedia(db, server, mediaId)
    if (row === undefined) throw new ProtocolError('M_NOT_FOUND', 'There is no such media.')
    return row
  }

  async function uriList(roomId: RoomId): Promise<Mxc[]> {
    const roomNid = await findRoomNid(db, roomId)
    if (roomNid === undefined) throw new ProtocolError('M_NOT_FOUND', 'This server knows no such room.')
    return (await mxcsInRoom({ query: db.scan }, roomNid)).flatMap((uri) => readMxc(uri) ?? [])
  }

  async function numberOf(userId: UserId): Promise<number> {
    return (await localAccount(db, userId, server)).user_nid
  }

  /** The bytes are deleted at once, or within two hours if somebody wanted them just now. */
  async function remove(mediaNids: readonly number[]): Promise<Removed> {
    const removed: string[] = []
    for (let at = 0; at < mediaNids.length; at += MAX_MEDIA_SWEPT_AT_ONCE) {
      const some = mediaNids.slice(at, at + MAX_MEDIA_SWEPT_AT_ONCE)
      removed.push(...(await db.tx((tx) => deleteMedia(tx, some))).map(({ media_id }) => media_id))
    }
    await sweep.contents()
    return { deleted_media: removed, total: removed.length }
  }

  const hide = (mediaNids: readonly number[], by: string) => db.tx((tx) => quarantine(tx, mediaNids, by, clock.now()))

  return {
    async get(mxc) {
      const row = await found(mxc)
      const owner = row.user_nid === null ? undefined : (await userIdsOf(db, [row.user_nid])).get(row.user_nid)
      const origin = { media_origin: row.server_name, user_id: owner ?? null, filesystem_id: null, url_cache: null }
      return { media_info: { ...view(row), ...origin } }
    },
    async listOf(userId, order, page) {
      const { total, media } = await listMediaOf(db, await numberOf(userId), order, page)
      const end = page.from + media.length
      return { media: media.map(view), total, ...(end < total ? { next_token: end } : {}) }
    },
    async usage(query, order, page) {
      const { total, users } = await surveyUsage(wholeTables(db), query, order, page)
      const end = page.from + users.length
      return { users: users.map((user) => ({ ...user })), total, ...(end < total ? { next_token: end } : {}) }
    },
    async inRoom(roomId) {
      const all = await uriList(roomId)
      const isLocal = (mxc: Mxc) => mxc.server === server
      return {
        local: all.filter(isLocal).map(writeMxc),
        remote: all.filter((mxc) => !isLocal(mxc)).map(writeMxc),
      }
    },
    quarantine: async (mxc, by) => hide([(await found(mxc)).media_nid], by),
    quarantineOf: async (userId, by) => hide(await mediaNidsOf(db, await numberOf(userId)), by),
    quarantineInRoom: async (roomId, by) => hide(await findMediaNids(db, await uriList(roomId)), by),
    async unquarantine(mxc) {
      const { digest } = await found(mxc)
      if (digest !== null) await db.tx((tx) => unquarantine(tx, digest, clock.now()))
    },
    async quarantineChanges(after) {
      const rows = await listQuarantineChanges(db, after, QUARANTINE_CHANGES_SHOWN)
      const changes = rows.map(({ origin, media_id, quarantined }) => ({ origin, media_id, quarantined }))
      return { next_batch: rows.at(-1)?.change_nid ?? after, changes }
    },
    async protect(mxc, isProtected) {
      const { media_nid } = await found(mxc)
      await db.tx((tx) => setProtected(tx, media_nid, isProtected))
    },
    delete: async (mxc) => remove([(await found(mxc)).media_nid]),
    async deleteOf(userId, order, page) {
      const { media } = await listMediaOf(db, await numberOf(userId), order, page)
      return remove(media.map(({ media_nid }) => media_nid))
    },
    async deleteOld({ before, above, keepAvatars }) {
      const kept = new Set(keepAvatars ? await avatarUris({ query: db.scan }) : [])
      const removed: number[] = []
      for (let after = 0; ; ) {
        const some = await oldLocalMedia(db, server, { before, above, after }, MAX_MEDIA_SWEPT_AT_ONCE)
        const last = some.at(-1)
        if (last === undefined) return remove(removed)
        after = last.media_nid
        for (const { media_nid, media_id: mediaId } of some) {
          if (!kept.has(writeMxc({ server, mediaId }))) removed.push(media_nid)
        }
      }
    },
    async purgeRemote(before) {
      const removed = await sweep.remoteUnseenSince(before)
      await sweep.contents()
      return removed
    },
  }
}

function view(row: MediaRow): JsonObject {
  return {
    media_id: row.media_id,
    media_type: row.content_type,
    media_length: row.bytes,
    upload_name: row.file_name,
    created_ts: row.created_at,
    last_access_ts: row.seen_at,
    quarantined_by: row.quarantined_by,
    safe_from_quarantine: row.is_protected,
    authenticated: !row.is_open,
    sha256: row.digest?.toString('hex') ?? null,
  }
}
