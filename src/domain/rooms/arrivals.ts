import type { RoomId } from '../../core/ids.ts'
import { createGapFiller, type GapFiller, type GapFillerParts } from './gap-filler.ts'
import { createLanes } from './lanes.ts'
import { createOutliers, type OutlierParts } from './outliers.ts'
import { createPlacing, type PlacingParts } from './placing.ts'
import { createReceiver, type Receiver, type ReceiverParts } from './receive.ts'

type Made = 'outliers' | 'placing' | 'lanes'

/** Wires what takes in events of other servers: those they send, and those that are asked for. Both write to a room in turn. */
export function createArrivals(
  parts: OutlierParts & PlacingParts & Omit<ReceiverParts, Made> & Omit<GapFillerParts, Made>,
): { readonly receiver: Receiver; readonly gapFiller: GapFiller } {
  const made = { outliers: createOutliers(parts), placing: createPlacing(parts), lanes: createLanes<RoomId>() }
  return { receiver: createReceiver({ ...parts, ...made }), gapFiller: createGapFiller({ ...parts, ...made }) }
}
