import type { ServerName } from '../../core/ids.ts'
import type { Reader, Tx } from '../../store/db/db.ts'
import type { Ledger } from '../../store/db/ledger.ts'
import { recordDeviceListChange } from '../../store/keys/device-lists.ts'
import { getMemberships } from '../../store/rooms/rooms.ts'
import type { ServiceDeviceNews } from '../appservices/news.ts'
import type { Notifier } from '../sync/notifier.ts'
import { RecentChanges } from '../sync/recent-changes.ts'
import type { UserRooms } from '../sync/user-rooms.ts'

/** Who hears of a change: the user and all who share a room, the user alone, or nobody because nothing changed. */
export type Audience = 'sharing' | 'self' | 'nobody'

/** A change of a user's device list. */
export interface DeviceListChange {
  /** The list's new version. */
  readonly position: number
  /** The version before; 0 if there was none. */
  readonly before: number
  /** The devices that changed; undefined if the change is not limited to some devices. */
  readonly devices: readonly string[] | undefined
}

/** The result of a write. */
export interface DeviceListWrite<T> {
  readonly audience: Audience
  readonly result: T
  /** The devices that were removed, or whose keys or names changed; undefined if the user's own keys changed. */
  readonly devices?: readonly string[] | undefined
}

/** Sends our users' device-list changes to other servers. */
export interface RemoteDeviceLists {
  /** The servers that have users in some rooms. */
  serversIn(roomNids: Iterable<number>): Promise<readonly ServerName[]>
  /** Stores a change to be sent to servers, in the transaction of the change. */
  queue(tx: Tx, userNid: number, servers: readonly ServerName[], change: DeviceListChange): Promise<void>
  /** Call this after that transaction is committed. */
  queued(servers: readonly ServerName[]): void
}

/** The only way to change keys and devices of users, so that syncs always hear of it. */
export interface DeviceLists {
  /** Runs `write` in the ledger's next commit, and wakes the audience that it returns. Its other results are passed through. */
  change<T>(userNid: number, write: (tx: Tx, position: number) => Promise<DeviceListWrite<T>>): Promise<T>
  /** A remote user has changed their devices or keys. Users who share a room hear of it, and fetch the keys again. */
  changedElsewhere(userNid: number): Promise<void>
  /** The newest change by a member of a room, for each room. */
  readonly rooms: RecentChanges
  /** The newest change that a user must hear of in any case, for each user. */
  readonly users: RecentChanges
}

export function createDeviceLists(deps: {
  readonly db: Reader
  readonly ledger: Ledger
  readonly notifier: Notifier
  readonly userRooms: UserRooms
  readonly remote: RemoteDeviceLists
  readonly services: Pick<ServiceDeviceNews, 'servicesSharingWith' | 'devicesChanged' | 'queued'>
}): DeviceLists {
  const { db, ledger, notifier, userRooms, remote, services } = deps
  const rooms = new RecentChanges(ledger.position())
  const users = new RecentChanges(ledger.position())
  ledger.onMissed(() => {
    for (const changes of [rooms, users]) changes.forget(ledger.position())
  })

  function tell(userNid: number, roomNids: Iterable<number>, position: number): void {
    users.record(userNid, position)
    notifier.wakeUsers([userNid])
    for (const roomNid of roomNids) {
      rooms.record(roomNid, position)
      notifier.wakeRoom(roomNid)
    }
  }

  return {
    rooms,
    users,
    async change(userNid, write) {
      // A user who comes to share a room during this write hears of the devices for that reason.
      const memberships = await userRooms.of(userNid)
      const joined = () => [...memberships].flatMap(([nid, { membership }]) => (membership === 'join' ? [nid] : []))
      const servers = await remote.serversIn(joined())
      const sharing = await services.servicesSharingWith(userNid)
      const { result, audience } = await ledger.append(
        async (tx, position) => {
          const outcome = await write(tx, position)
          if (outcome.audience !== 'sharing') return outcome
          const before = await recordDeviceListChange(tx, userNid, position)
          const { devices } = outcome
          if (servers.length > 0) await remote.queue(tx, userNid, servers, { position, before, devices })
          if (sharing.length > 0) await services.devicesChanged(tx, sharing, userNid)
          return outcome
        },
        ({ audience }, position) => {
          if (audience !== 'nobody') tell(userNid, audience === 'sharing' ? joined() : [], position)
        },
      )
      if (audience === 'sharing') remote.queued(servers)
      if (audience === 'sharing') services.queued(sharing)
      return result
    },
    async changedElsewhere(userNid) {
      // Memberships of remote users in memory may be out of date.
      const rows = await getMemberships(db, userNid)
      const joined = rows.flatMap(({ membership, room_nid }) => (membership === 'join' ? [room_nid] : []))
      if (joined.length === 0) return
      const sharing = await services.servicesSharingWith(userNid)
      await ledger.append(
        async (tx, position) => {
          await recordDeviceListChange(tx, userNid, position)
          if (sharing.length > 0) await services.devicesChanged(tx, sharing, userNid)
        },
        (_, position) => tell(userNid, joined, position),
      )
      services.queued(sharing)
    },
  }
}
