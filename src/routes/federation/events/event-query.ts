import type { EventId } from '../../../core/ids.ts'
import { Type } from '../../../core/shapes.ts'

export const EventQuery = Type.Object({ event_id: Type.Unsafe<EventId>({ type: 'string', format: 'event-id' }) })
