import type { Tx } from '../../store/db.ts'
import { recordDeviceListChange } from '../../store/device-lists.ts'
import type { Ledger } from '../../store/ledger.ts'
import type { Notifier } from '../sync/notifier.ts'
import { RecentChanges } from '../sync/recent-changes.ts'
import type { UserRooms } from '../sync/user-rooms.ts'

/** Who is to be told: the user with all who share a room, the user alone, or nobody since nothing changed. */
export type Audience = 'sharing' | 'self' | 'nobody'

/** The one way in which keys and devices of users change, so that syncs are told of it. */
export interface DeviceLists {
  /** Runs `write` in the ledger's next commit, and tells whom it names. What it gives beside the audience is handed through. */
  change<T>(
    userNid: number,
    write: (tx: Tx, position: number) => Promise<{ audience: Audience; result: T }>,
  ): Promise<T>
  /** The newest change of somebody joined to a room, by the room. */
  readonly rooms: RecentChanges
  /** The newest change that a user is told of whatever their rooms. */
  readonly users: RecentChanges
}

export function createDeviceLists(deps: {
  readonly ledger: Ledger
  readonly notifier: Notifier
  readonly userRooms: UserRooms
}): DeviceLists {
  const { ledger, notifier, userRooms } = deps
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
      const { result } = await ledger.append(
        async (tx, position) => {
          const outcome = await write(tx, position)
          if (outcome.audience === 'sharing') await recordDeviceListChange(tx, userNid, position)
          return outcome
        },
        ({ audience }, position) => {
          if (audience !== 'nobody') tell(userNid, audience === 'sharing' ? joined() : [], position)
        },
      )
      return result
    },
  }
}
