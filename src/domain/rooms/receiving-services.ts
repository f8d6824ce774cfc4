import type { RoomId } from '../../core/ids.ts'
import { createLanes } from '../../core/keyed-queue.ts'
import { createGapFiller, type GapFiller, type GapFillerParts } from './backfill/backfill.ts'
import { createOutliers, type OutlierParts } from './receive/outliers.ts'
import { createPlacing, type PlacingParts } from './receive/placing.ts'
import { createReceiver, type Receiver, type ReceiverParts } from './receive/receive.ts'
import { createExpulsions, type ExpulsionParts } from './remote/partial-state-kicks.ts'
import { createProcessJoin, type ProcessJoin, type ProcessJoinParts } from './remote/process-join.ts'
import { createRoomFiller, type RoomFiller, type RoomFillerParts } from './remote/resync.ts'
import type { Room } from './room/room.ts'

type Made = 'outliers' | 'placing' | 'lanes' | 'fill' | 'filled' | 'expulsions'

/**
 * Wires what takes in events of other servers: those they send, and those that are asked for, for history and for rooms that were
 * joined without their members. All write to a room in turn.
 */
export function createArrivals(
  parts: OutlierParts &
    PlacingParts &
    Omit<ReceiverParts, Made> &
    Omit<ProcessJoinParts, Made> &
    Omit<ExpulsionParts, Made> &
    Omit<GapFillerParts, Made> &
    Omit<RoomFillerParts, Made> & {
      readonly checkpoints: { consider(room: Room): void }
      readonly notifier: { wakeRoom(roomNid: number): void }
    },
): {
  readonly receiver: Receiver
  readonly processJoin: ProcessJoin
  readonly gapFiller: GapFiller
  readonly filler: RoomFiller
} {
  const lanes = createLanes<RoomId>()
  const made = { ...parts, outliers: createOutliers(parts), placing: createPlacing(parts), lanes }
  const filler = createRoomFiller({
    ...made,
    expulsions: createExpulsions(made),
    filled(room) {
      parts.checkpoints.consider(room)
      parts.notifier.wakeRoom(room.nid)
    },
  })
  return {
    receiver: createReceiver(made),
    processJoin: createProcessJoin({ ...made, fill: filler.begin }),
    gapFiller: createGapFiller(made),
    filler,
  }
}
