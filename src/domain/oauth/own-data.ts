import type { Readable } from 'node:stream'
import { ProtocolError } from '../../core/errors.ts'
import type { UserId } from '../../core/ids.ts'
import { TAR_END, tarHeader, tarPadding } from '../../core/media/tar.ts'
import { listAccountData } from '../../store/accounts/account-data.ts'
import { listExternalIds } from '../../store/accounts/external-ids.ts'
import { findProfile } from '../../store/accounts/profiles.ts'
import { getPushersOf } from '../../store/accounts/pushers.ts'
import { listUserThreepids } from '../../store/accounts/user-threepids.ts'
import type { Database } from '../../store/db/db.ts'
import type { MediaRow } from '../../store/media/media.ts'
import { listMediaOf } from '../../store/media/media-survey.ts'
import { accountCreatedAt, ownEventsFrom, roomsOf } from '../../store/oauth/own-events.ts'
import { listSessions } from '../../store/oauth/sessions.ts'
import type { Clock } from '../clock.ts'
import { EVENT_BYTES_READ_AT_ONCE, EVENTS_READ_AT_ONCE, MAX_ARCHIVES, MEDIA_READ_AT_ONCE } from '../limits/oauth.ts'

type Owner = { readonly userNid: number; readonly userId: UserId }
/** Opens a file of the media store. */
export type OpenMedia = (media: MediaRow & { readonly digest: Buffer; readonly bytes: number }) => Promise<Readable>

/** What the server keeps about a person, as an archive of JSON and media. */
export interface OwnData {
  /**
   * The archive, made while it is read: nothing of it is stored, and no more than a part is in memory.
   * @throws ProtocolError `M_LIMIT_EXCEEDED` while another one of the user, or too many of all, are being made
   */
  archive(owner: Owner, openMedia: OpenMedia): AsyncGenerator<Buffer>
}

const FIRST_POSITION = Number.MIN_SAFE_INTEGER

function busy(): ProtocolError {
  const error = 'Such a file is being made already. Wait until it is complete, and try again.'
  return new ProtocolError('M_LIMIT_EXCEEDED', error, { extra: { retry_after_ms: 60_000 } })
}

export function createOwnData({ db, clock }: { readonly db: Database; readonly clock: Clock }): OwnData {
  const running = new Set<number>()

  function* file(name: string, content: Buffer): Generator<Buffer> {
    yield tarHeader(name, content.length, clock.now())
    yield content
    yield tarPadding(content.length)
  }
  const json = (name: string, value: unknown) => file(name, Buffer.from(JSON.stringify(value, null, 1)))

  async function* account({ userNid, userId }: Owner): AsyncGenerator<Buffer> {
    const accountData = await listAccountData(db, userNid)
    const pushers = await getPushersOf(db, userNid)
    yield* json('account.json', {
      user_id: userId,
      created_at: await accountCreatedAt(db, userNid),
      profile: await findProfile(db, userId),
      addresses: await listUserThreepids(db, userNid),
      sign_in_services: await listExternalIds(db, userNid),
      sessions: (await listSessions(db, userNid)).map(({ client, ...session }) => ({
        ...session,
        client: client === null ? null : JSON.parse(client),
      })),
      pushers: pushers.map(({ app_id, kind, pushkey }) => ({ app_id, kind, pushkey })),
    })
    yield* json(
      'account-data.json',
      accountData.map(({ room_id, type, content }) => ({ room_id, type, content })),
    )
  }

  /** The events of each room that the person sent, a part of the room at a time. */
  async function* events({ userNid }: Owner): AsyncGenerator<Buffer> {
    const rooms = await roomsOf(db, userNid)
    yield* json(
      'rooms.json',
      rooms.map(({ room_id, membership }) => ({ room_id, membership })),
    )
    for (const [number, { room_nid: roomNid }] of rooms.entries()) {
      let after = FIRST_POSITION
      for (let part = 0; ; part += 1) {
        const most = { atMost: EVENTS_READ_AT_ONCE, bytes: EVENT_BYTES_READ_AT_ONCE }
        const { last, events } = await ownEventsFrom(db, { roomNid, userNid, after, ...most })
        if (last === null) break
        if (events.length > 0) yield* file(`events/${number}-${part}.json`, Buffer.from(`[${events.join(',\n')}]`))
        after = last
      }
    }
  }

  async function* media({ userNid }: Owner, open: OpenMedia): AsyncGenerator<Buffer> {
    for (let from = 0; ; from += MEDIA_READ_AT_ONCE) {
      const page = { from, limit: MEDIA_READ_AT_ONCE, isDescending: false }
      const rows = (await listMediaOf(db, userNid, 'created_ts', page)).media
      if (rows.length === 0) return
      yield* json(
        `media/list-${from}.json`,
        rows.map(({ media_id, file_name, content_type, created_at, bytes }) => ({
          ...{ media_id, file_name, content_type, created_at, bytes },
        })),
      )
      for (const row of rows) yield* oneFile(row, open)
    }
  }

  /** Content that an operator hides, or that is lost, is only in the list. */
  async function* oneFile(row: MediaRow, open: OpenMedia): AsyncGenerator<Buffer> {
    const { digest, bytes, media_id, created_at } = row
    if (digest === null || bytes === null || !row.is_stored || row.quarantined_by !== null) return
    const stream = await open({ ...row, digest, bytes }).catch(() => undefined)
    if (stream === undefined) return
    yield tarHeader(`media/${media_id.replace(/[^\w-]/g, '_').slice(0, 90)}`, bytes, created_at)
    for await (const chunk of stream) yield chunk as Buffer
    yield tarPadding(bytes)
  }

  return {
    async *archive(owner, openMedia) {
      if (running.has(owner.userNid) || running.size >= MAX_ARCHIVES) throw busy()
      running.add(owner.userNid)
      try {
        yield* account(owner)
        yield* events(owner)
        yield* media(owner, openMedia)
        yield TAR_END
      } finally {
        running.delete(owner.userNid)
      }
    },
  }
}
