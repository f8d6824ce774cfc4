import type { Config } from '../../../../config/schema.ts'
import { lifetimeOf, type RetentionBounds, retentionOf } from '../../../../core/event/retention.ts'
import type { Clock } from '../../../clock.ts'
import type { Room } from '../room.ts'
import type { RoomEvent } from '../room-event.ts'

/** For how long messages are kept (`rooms.retention`, `m.room.retention`). */
export interface Lifetimes {
  /** Of a room's messages, in milliseconds; undefined: for ever. Synchronous where it is known already. */
  of(room: Room): number | undefined | Promise<number | undefined>
  /** The shortest that a room can ask for, and that of rooms that say nothing. */
  readonly bounds: RetentionBounds
  /** Messages from after this time are current in every room. */
  horizon(): number
  /** Those of a room's events whose time is not over. State stays, and so does the newest event. */
  current(room: Room, events: readonly RoomEvent[]): Promise<readonly RoomEvent[]>
}

const DAY_MS = 24 * 3_600_000
const HOUR_MS = 3_600_000

/** Undefined where messages are kept for ever: then nothing is asked for any of them. */
export function createLifetimes({
  config,
  clock,
}: {
  readonly config: Pick<Config, 'rooms'>
  readonly clock: Clock
}): Lifetimes | undefined {
  const { enabled, default_days, shortest_hours, longest_days } = config.rooms.retention
  if (!enabled) return undefined
  const bounds = {
    byDefault: default_days === 0 ? undefined : default_days * DAY_MS,
    shortest: shortest_hours * HOUR_MS,
    longest: longest_days * DAY_MS,
  }
  const unset = lifetimeOf(retentionOf(undefined), bounds)

  const horizon = () => clock.now() - bounds.shortest

  function of(room: Room): number | undefined | Promise<number | undefined> {
    const nid = room.stateNid(room.committed.state, 'm.room.retention', '')
    if (nid === 0) return unset
    const setting = room.fact(nid)
    if (setting) return lifetimeOf(retentionOf(setting), bounds)
    return room.events([nid]).then((found) => lifetimeOf(retentionOf(found.get(nid)), bounds))
  }

  return {
    of,
    bounds,
    horizon,
    async current(room, events) {
      const safe = horizon()
      if (events.every(({ ts }) => ts > safe)) return events
      const asked = of(room)
      const lifetime = asked instanceof Promise ? await asked : asked
      if (lifetime === undefined) return events
      const end = clock.now() - lifetime
      const isCurrent = (event: RoomEvent) => event.isState || event.ts > end || event.pos === room.committed.pos
      return events.every(isCurrent) ? events : events.filter(isCurrent)
    },
  }
}
