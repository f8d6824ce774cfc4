import type { RoomId } from '../../core/ids.ts'
import { createKeyedQueue } from '../../core/keyed-queue.ts'
import { type Backfill, type BackfillParts, createBackfill } from './backfill/backfill.ts'
import { createOutliers, type OutlierParts } from './receive/outliers.ts'
import { createPlacing, type PlacingParts } from './receive/placing.ts'
import { createReceiver, type Receiver, type ReceiverParts } from './receive/receive.ts'
import { createPartialStateKicks, type PartialStateKickParts } from './remote/partial-state-kicks.ts'
import { createProcessJoin, type ProcessJoin, type ProcessJoinParts } from './remote/process-join.ts'
import { createResync, type Resync, type ResyncParts } from './remote/resync.ts'
import type { Room } from './room/room.ts'

type Made = 'outliers' | 'placing' | 'roomQueue' | 'fill' | 'filled' | 'kicks'

/**
 * Wires what takes in events of other servers: those they send, and those that are asked for, for history and for rooms that were
 * joined without their members. All write to a room in turn.
 */
export function createReceivingServices(
  parts: OutlierParts &
    PlacingParts &
    Omit<ReceiverParts, Made> &
    Omit<ProcessJoinParts, Made> &
    Omit<PartialStateKickParts, Made> &
    Omit<BackfillParts, Made> &
    Omit<ResyncParts, Made> & {
      readonly checkpoints: { consider(room: Room): void }
      readonly notifier: { wakeRoom(roomNid: number): void }
    },
): {
  readonly receiver: Receiver
  readonly processJoin: ProcessJoin
  readonly backfill: Backfill
  readonly resync: Resync
} {
  const roomQueue = createKeyedQueue<RoomId>()
  const made = { ...parts, outliers: createOutliers(parts), placing: createPlacing(parts), roomQueue }
  const resync = createResync({
    ...made,
    kicks: createPartialStateKicks(made),
    filled(room) {
      parts.checkpoints.consider(room)
      parts.notifier.wakeRoom(room.nid)
    },
  })
  return {
    receiver: createReceiver(made),
    processJoin: createProcessJoin({ ...made, fill: resync.begin }),
    backfill: createBackfill(made),
    resync,
  }
}
