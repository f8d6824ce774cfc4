import type { ServerName } from '../../core/ids.ts'
import type { Reader, Tx } from '../../store/db/db.ts'
import type { Ledger } from '../../store/db/ledger.ts'
import { recordDeviceListChange } from '../../store/keys/device-lists.ts'
import { getMemberships } from '../../store/rooms/rooms.ts'
import type { ServiceDeviceNews } from '../appservices/news.ts'
import type { Notifier } from '../sync/notifier.ts'
import { RecentChanges } from '../sync/recent-changes.ts'
import type { UserRooms } from '../sync/user-rooms.ts'

/** Who is to be told: the user with all who share a room, the user alone, or nobody since nothing changed. */
export type Audience = 'sharing' | 'self' | 'nobody'

/** What a change makes of a user's list. */
export interface DeviceListChange {
  /** The new version of the list. */
  readonly position: number
  /** The version before; 0 when there was none. */
  readonly before: number
  /** What changed; undefined where that is not in one device or the other. */
  readonly devices: readonly string[] | undefined
}

/** What a write did. */
export interface DeviceListWrite<T> {
  readonly audience: Audience
  readonly result: T
  /** The devices whose keys or names changed, or that are gone; undefined where keys of the user did. */
  readonly devices?: readonly string[] | undefined
}

/** Other servers, which keep lists of our users' devices. */
export interface RemoteDeviceLists {
  /** Those that have users in some rooms. */
  serversIn(roomNids: Iterable<number>): Promise<readonly ServerName[]>
  /** Keeps word of a change for servers, in the transaction of the change. */
  tell(tx: Tx, userNid: number, servers: readonly ServerName[], change: DeviceListChange): Promise<void>
  /** To be called after that transaction was committed. */
  told(servers: readonly ServerName[]): void
}

/** The one way in which keys and devices of users change, so that syncs are told of it. */
export interface DeviceLists {
  /** Runs `write` in the ledger's next commit, and tells whom it names. What it gives beside the audience is handed through. */
  change<T>(userNid: number, write: (tx: Tx, position: number) => Promise<DeviceListWrite<T>>): Promise<T>
  /**
   * A user of another server has changed their devices or keys. Those who share a room are told, and ask that server again.
   */
  changedElsewhere(userNid: number): Promise<void>
  /** The newest change of somebody joined to a room, by the room. */
  readonly rooms: RecentChanges
  /** The newest change that a user is told of whatever their rooms. */
  readonly users: RecentChanges
}

export function createDeviceLists(deps: {
  readonly db: Reader
  readonly ledger: Ledger
  readonly notifier: Notifier
  readonly userRooms: UserRooms
  readonly remote: RemoteDeviceLists
  readonly services: Pick<ServiceDeviceNews, 'besides' | 'devicesChanged' | 'told'>
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
      // Who comes to share a room with the user while this is written is told for that reason.
      const memberships = await userRooms.of(userNid)
      const joined = () => [...memberships].flatMap(([nid, { membership }]) => (membership === 'join' ? [nid] : []))
      const servers = await remote.serversIn(joined())
      const told = await services.besides(userNid)
      const { result, audience } = await ledger.append(
        async (tx, position) => {
          const outcome = await write(tx, position)
          if (outcome.audience !== 'sharing') return outcome
          const before = await recordDeviceListChange(tx, userNid, position)
          const { devices } = outcome
          if (servers.length > 0) await remote.tell(tx, userNid, servers, { position, before, devices })
          if (told.length > 0) await services.devicesChanged(tx, told, userNid)
          return outcome
        },
        ({ audience }, position) => {
          if (audience !== 'nobody') tell(userNid, audience === 'sharing' ? joined() : [], position)
        },
      )
      if (audience === 'sharing') remote.told(servers)
      if (audience === 'sharing') services.told(told)
      return result
    },
    async changedElsewhere(userNid) {
      // Memberships of others are not kept up to date in memory.
      const rows = await getMemberships(db, userNid)
      const joined = rows.flatMap(({ membership, room_nid }) => (membership === 'join' ? [room_nid] : []))
      if (joined.length === 0) return
      const told = await services.besides(userNid)
      await ledger.append(
        async (tx, position) => {
          await recordDeviceListChange(tx, userNid, position)
          if (told.length > 0) await services.devicesChanged(tx, told, userNid)
        },
        (_, position) => tell(userNid, joined, position),
      )
      services.told(told)
    },
  }
}
