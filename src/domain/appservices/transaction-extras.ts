import { membershipOf } from '../../core/event/content.ts'
import type { UserId } from '../../core/ids.ts'
import type { JsonObject } from '../../core/json.ts'
import { type NewsKind, type NewsRow, usersBeside } from '../../store/appservices/appservice-news.ts'
import type { Reader } from '../../store/db/db.ts'
import { findLocalUsers } from '../../store/keys/device-keys.ts'
import { getJoinedUsers } from '../../store/rooms/rooms.ts'
import type { Clock } from '../clock.ts'
import type { DeviceKeyCounts } from '../keys/key-counts.ts'
import { MAX_APPSERVICE_TRANSACTION_BYTES, MAX_DEVICE_LISTS_PER_ROOM } from '../limits.ts'
import type { EventCache } from '../rooms/room/event-cache.ts'
import type { RoomEvent } from '../rooms/room/room-event.ts'
import { type PresenceOf, presenceContent } from '../sync/presence.ts'
import type { Appservice } from './appservice.ts'
import { type AppserviceNews, wantsDeviceData, wantsEphemeral } from './news.ts'
import type { AppserviceRegistry } from './registry.ts'

/** The parts of a transaction beside its events. */
export interface TransactionExtras {
  /** Events as JSON. */
  readonly ephemeral: readonly string[]
  /** Other keys of the body, by their names in the specification or its proposals, with their JSON. */
  readonly fields: readonly { readonly names: readonly string[]; readonly json: string }[]
  /** The number of the last news item in it; undefined if there is none. */
  readonly upTo: number | undefined
  /** There may be more news after these. */
  readonly isFull: boolean
}

export const NO_EXTRAS: TransactionExtras = { ephemeral: [], fields: [], upTo: undefined, isFull: false }

/** Frameworks read one name or the other, so a key that is not in the specification yet has both. */
export const EPHEMERAL = ['ephemeral', 'de.sorunome.msc2409.ephemeral']
const TO_DEVICE = ['to_device', 'de.sorunome.msc2409.to_device']
const encryption = (name: string) => [name, `org.matrix.msc3202.${name}`]

export interface ExtrasParts {
  readonly db: Reader
  readonly registry: AppserviceRegistry
  readonly clock: Clock
  readonly news: AppserviceNews
  readonly events: EventCache
  readonly keyCounts: Pick<DeviceKeyCounts, 'of'>
  presenceOf(userId: UserId): PresenceOf | undefined
}

/** Users whose membership changed, by whether the service's own users now share a room with them. */
interface Moves {
  readonly came: Set<UserId>
  readonly went: Set<UserId>
  /** Rooms that users of the service joined or left. */
  readonly entered: Set<number>
  readonly left: Set<number>
}

/**
 * Reads the parts of a service's next transaction beside `taken`: its news after a number, and the device-list changes that follow from
 * those events.
 */
export function createTransactionExtras(parts: ExtrasParts) {
  const { db, registry, clock, news, events, keyCounts, presenceOf } = parts

  const presenceEvent = (userId: UserId): JsonObject => ({
    type: 'm.presence',
    sender: userId,
    content: presenceContent(presenceOf(userId), clock.now()),
  })

  async function movesIn(service: Appservice, taken: readonly RoomEvent[]): Promise<Moves> {
    const moves: Moves = { came: new Set(), went: new Set(), entered: new Set(), left: new Set() }
    const members = taken.filter(({ type, isState }) => type === 'm.room.member' && isState)
    const before = await events.load(members.flatMap(({ replacesNid }) => replacesNid ?? []))
    for (const event of members) {
      const was = event.replacesNid === undefined ? 'leave' : membershipOf(before.get(event.replacesNid))
      const is = membershipOf(event)
      if ((was === 'join') === (is === 'join')) continue
      const target = event.pdu.state_key as UserId
      const isOwn = registry.claimsOn('users', target).some((claim) => claim.service.id === service.id)
      if (isOwn) (is === 'join' ? moves.entered : moves.left).add(event.roomNid)
      else (is === 'join' ? moves.came : moves.went).add(target)
    }
    return moves
  }

  async function membersOf(rooms: Iterable<number>): Promise<UserId[]> {
    const found = await Promise.all([...rooms].map((roomNid) => getJoinedUsers(db, roomNid)))
    return found.flatMap((users) => users.slice(0, MAX_DEVICE_LISTS_PER_ROOM).map(({ user_id }) => user_id))
  }

  /** Uses the current state, even if the events were delayed for long. */
  async function deviceLists(service: Appservice, changed: readonly UserId[], taken: readonly RoomEvent[]) {
    const { came, went, entered, left } = await movesIn(service, taken)
    const maybeChanged = new Set([...changed, ...came, ...(await membersOf(entered))])
    const maybeLeft = new Set([...went, ...(await membersOf(left))])
    if (maybeChanged.size + maybeLeft.size === 0) return undefined
    const beside = await usersBeside(db, service.id, [...maybeChanged, ...maybeLeft])
    const lists = {
      changed: [...maybeChanged].filter((userId) => beside.has(userId)),
      left: [...maybeLeft].filter((userId) => !beside.has(userId)),
    }
    return lists.changed.length + lists.left.length === 0 ? undefined : lists
  }

  /** The counts of unclaimed keys by user id, then device id. */
  async function countsOf(names: readonly string[]) {
    const devices = names.map((name) => {
      const space = name.indexOf(' ')
      return { userId: name.slice(0, space) as UserId, deviceId: name.slice(space + 1) }
    })
    const nids = await findLocalUsers(
      db,
      devices.map(({ userId }) => userId),
    )
    const oneTime: Record<string, Record<string, object>> = {}
    const fallback: Record<string, Record<string, readonly string[]>> = {}
    for (const { userId, deviceId } of devices) {
      const userNid = nids.get(userId)
      if (userNid === undefined) continue
      const counts = await keyCounts.of({ userNid, deviceId })
      oneTime[userId] = { ...oneTime[userId], [deviceId]: Object.fromEntries(counts.oneTime) }
      fallback[userId] = { ...fallback[userId], [deviceId]: counts.unusedFallback }
    }
    return { oneTime, fallback }
  }

  return async (
    service: Appservice,
    after: number | undefined,
    taken: readonly RoomEvent[],
  ): Promise<TransactionExtras> => {
    if (!wantsEphemeral(service) && !wantsDeviceData(service)) return NO_EXTRAS
    const read = after === undefined ? { rows: [], isFull: false } : await news.read(service.id, after)
    const rows = fitting(read.rows)
    const fields: { names: readonly string[]; json: string }[] = []
    const messages = contentsOf(rows, 'message')
    if (messages.length > 0) fields.push({ names: TO_DEVICE, json: `[${messages.join(',')}]` })
    if (wantsDeviceData(service)) {
      const lists = await deviceLists(service, namesOf(rows, 'device_list') as UserId[], taken)
      if (lists) fields.push({ names: encryption('device_lists'), json: JSON.stringify(lists) })
      const keys = namesOf(rows, 'keys')
      if (keys.length > 0) {
        const { oneTime, fallback } = await countsOf(keys)
        fields.push({ names: encryption('device_one_time_keys_count'), json: JSON.stringify(oneTime) })
        fields.push({ names: encryption('device_unused_fallback_key_types'), json: JSON.stringify(fallback) })
      }
    }
    const presence = namesOf(rows, 'presence').map((userId) => JSON.stringify(presenceEvent(userId as UserId)))
    return {
      ephemeral: [...contentsOf(rows, 'receipt'), ...presence],
      fields,
      upTo: rows.at(-1)?.nid,
      isFull: read.isFull || rows.length < read.rows.length,
    }
  }
}

/** As many rows as a transaction may hold, and at least one. */
function fitting(rows: readonly NewsRow[]): readonly NewsRow[] {
  let bytes = 0
  const end = rows.findIndex(({ content }, index) => {
    bytes += Buffer.byteLength(content)
    return index > 0 && bytes > MAX_APPSERVICE_TRANSACTION_BYTES
  })
  return end === -1 ? rows : rows.slice(0, end)
}

function contentsOf(rows: readonly NewsRow[], kind: NewsKind): string[] {
  return rows.filter((row) => row.kind === kind).map(({ content }) => content)
}

function namesOf(rows: readonly NewsRow[], kind: NewsKind): string[] {
  return rows.filter((row) => row.kind === kind).map(({ name }) => name)
}
