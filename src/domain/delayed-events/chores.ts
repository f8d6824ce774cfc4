import type { Tx } from '../../store/db/db.ts'
import { forgetDelayedEvents, forgetOldestDelayed } from '../../store/rooms/delayed-events.ts'
import { FINALISED_DELAYED_KEPT_MS, MAX_FINALISED_DELAYED } from '../limits/delayed-events.ts'

export const delayedEventChores = [
  (tx: Tx, now: number, atMost: number): Promise<number> =>
    forgetDelayedEvents(tx, now - FINALISED_DELAYED_KEPT_MS, atMost),
  (tx: Tx, _now: number, atMost: number): Promise<number> => forgetOldestDelayed(tx, MAX_FINALISED_DELAYED, atMost),
]
