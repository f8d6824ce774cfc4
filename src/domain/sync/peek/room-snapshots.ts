import { ProtocolError } from '../../../core/errors.ts'
import { membershipOf } from '../../../core/event/content.ts'
import { compileFilter } from '../../../core/filter.ts'
import type { RoomId } from '../../../core/ids.ts'
import { JsonBytes } from '../../../core/json-bytes.ts'
import { type AccountDataRow, accountDataBetween, accountDataOf } from '../../../store/accounts/account-data.ts'
import type { Requester } from '../../accounts/requester.ts'
import { INITIAL_MESSAGES } from '../../limits/peeking.ts'
import { MAX_ANSWER_PART_BYTES } from '../../limits.ts'
import type { RoomDirectory } from '../../rooms/read/directory.ts'
import type { RoomReader } from '../../rooms/read/reader.ts'
import { presenceEvents } from '../answer.ts'
import type { SyncSources } from '../sources.ts'
import { encodeStreamToken, type StreamPosition } from '../token.ts'
import type { UserRoom } from '../user-rooms.ts'

/** Rooms as clients read them before sync (client-server API, `initialSync`), and by which they preview rooms. */
export interface RoomSnapshots {
  /** One room: its newest messages, its state, and what the user keeps for it. @throws ProtocolError `M_FORBIDDEN` */
  room(by: Requester, roomId: RoomId, limit: number | undefined): Promise<JsonBytes>
  /** All rooms of a user. They are read one after another while the answer is sent. */
  all(by: Requester, request: { readonly limit: number | undefined; readonly withLeft: boolean }): Promise<JsonBytes>
}

export function createRoomSnapshots(parts: {
  readonly sources: SyncSources
  readonly roomReader: Pick<RoomReader, 'recent' | 'state'>
  readonly directory: Pick<RoomDirectory, 'visibilityOf'>
  /** The current position of every stream. */
  now(): StreamPosition
}): RoomSnapshots {
  const { sources, roomReader, directory } = parts
  const { registry, userRooms, events } = sources
  const { recent } = roomReader

  /** `[{type, content}]`. Contents that are too large to hold are read while they are sent. */
  async function accountData(by: Requester, roomId: RoomId | '', upTo: number): Promise<JsonBytes> {
    const bounds = { maxBytes: MAX_ANSWER_PART_BYTES, roomId }
    const rows = await accountDataBetween(sources.db, by.userNid, 0, upTo, bounds)
    const read = rows.filter(({ json }) => json !== undefined)
    const left = rows.filter(({ json }) => json === undefined)
    const out = new JsonBytes().text('[').append(entries(read, true))
    if (left.length > 0) {
      out.later(async function* () {
        for (const [index, row] of left.entries()) {
          const some = await accountDataOf(sources.db.bulk, by.userNid, [row])
          yield entries(some, read.length + index === 0)
        }
      })
    }
    return out.text(']')
  }

  async function room(
    by: Requester,
    roomId: RoomId,
    now: StreamPosition,
    limit = INITIAL_MESSAGES,
  ): Promise<JsonBytes> {
    const readable = await recent.mustPreview(by, roomId)
    const member = await readable.room.stateEvent('m.room.member', by.userId)
    const out = new JsonBytes().text('{').key('room_id', true).value(roomId)
    if (member) out.key('membership').value(membershipOf(member))
    out.key('visibility').value(await directory.visibilityOf(roomId))
    out.key('messages').append(await recent.latest(by, readable, limit, encodeStreamToken(now)))
    out.key('state').append(await roomReader.state(by, roomId))
    return out
      .key('account_data')
      .append(await accountData(by, roomId, now.ledger))
      .text('}')
  }

  async function invitation(by: Requester, roomNid: number, { eventNid }: UserRoom): Promise<JsonBytes | undefined> {
    const [{ id }, loaded] = await Promise.all([registry.getByNid(roomNid), events.load([eventNid])])
    const event = loaded.get(eventNid)
    if (!event) return undefined
    const [written] = await recent.write(by, await registry.getByNid(roomNid), [event])
    const out = new JsonBytes().text('{').key('room_id', true).value(id).key('membership').value('invite')
    return out.key('invite').append(written!).text('}')
  }

  async function snapshot(by: Requester, [nid, own]: [number, UserRoom], now: StreamPosition, limit?: number) {
    try {
      if (own.membership === 'invite') return await invitation(by, nid, own)
      return await room(by, (await registry.getByNid(nid)).id, now, limit)
    } catch (error) {
      // The room was removed or left meanwhile, was never read here, or its members are still being fetched.
      if (error instanceof ProtocolError) return undefined
      throw error
    }
  }

  return {
    room: (by, roomId, limit) => room(by, roomId, parts.now(), limit),

    async all(by, { limit, withLeft }) {
      const now = parts.now()
      const own = await userRooms.of(by.userNid)
      const wanted = [...own].filter(([, { membership, forgotten }]) => {
        if (membership === 'join' || membership === 'invite') return true
        return withLeft && !forgotten && membership !== 'knock'
      })
      const out = new JsonBytes().text('{').key('end', true).value(encodeStreamToken(now))
      out.key('presence').value(await presenceOf(by, own, now))
      out.key('account_data').append(await accountData(by, '', now.ledger))
      out.key('rooms').text('[')
      out.later(async function* () {
        let isFirst = true
        for (const entry of wanted) {
          const json = await snapshot(by, entry, now, limit)
          if (!json) continue
          yield new JsonBytes().text(isFirst ? '' : ',').append(json)
          isFirst = false
        }
      })
      return out.text(']}')
    },
  }

  async function presenceOf(by: Requester, own: ReadonlyMap<number, UserRoom>, now: StreamPosition) {
    const joined = new Map([...own].filter(([, { membership }]) => membership === 'join'))
    const timeMs = sources.clock.now()
    const ignored = await sources.ignoredUsers.of(by.userNid)
    return presenceEvents({ sources, by, since: undefined, now, ignored, timeMs, request: EVERYTHING }, joined, [])
  }
}

const EVERYTHING = {
  filter: compileFilter(),
  since: undefined,
  fullState: false,
  timeoutMs: 0,
  stateAfter: undefined,
  presence: 'online',
  signal: AbortSignal.abort(),
} as const

function entries(rows: readonly AccountDataRow[], isFirst: boolean): JsonBytes {
  const out = new JsonBytes()
  rows.forEach(({ type, json = '{}' }, index) => {
    out.text(`${isFirst && index === 0 ? '' : ','}{"type":${JSON.stringify(type)},"content":${json}}`)
  })
  return out
}
