import type { Tx } from '../../store/db/db.ts'
import { forgetDelayedEvents } from '../../store/rooms/delayed-events.ts'
import { FINALISED_DELAYED_KEPT_MS } from '../limits/delayed-events.ts'

export const delayedEventChores = [
  (tx: Tx, now: number, atMost: number): Promise<number> =>
    forgetDelayedEvents(tx, now - FINALISED_DELAYED_KEPT_MS, atMost),
]
