import type { Logger } from 'pino'
import type { ReadPdu } from '../../../core/event/read.ts'
import type { EventId } from '../../../core/ids.ts'
import { judgingIds } from '../room/event-references.ts'
import type { RoomRegistry } from '../room/registry.ts'
import type { Surroundings } from '../room/surroundings.ts'
import type { Intake } from './intake.ts'
import type { Outliers } from './outliers.ts'
import type { Placed, Placing } from './placing.ts'
import { dropped, type Received, receivedAs, settled } from './received.ts'

/** Events of one room that a server sent together, and their outcomes so far. */
export interface ReceivedBatch {
  readonly results: Map<EventId, Received>
  /** Events that are stored only if they are accepted. */
  readonly offered: ReadonlySet<EventId>
  /** Whether each event is written alone, so that one that cannot be written does not fail the others. */
  isOneByOne: boolean
}

export interface ReceivePassParts {
  readonly registry: RoomRegistry
  readonly outliers: Outliers
  readonly placing: Placing
  readonly log: Pick<Logger, 'error'>
}

/**
 * One pass over a batch, on one copy of the room: places each event after its previous events, and records the outcomes. Events that found
 * the room moved get no outcome.
 *
 * @param order the events, each after its previous events
 * @throws the error that kept events from being written
 */
export type ReceivePass = (intake: Intake, order: readonly ReadPdu[], batch: ReceivedBatch) => Promise<void>

export function createReceivePass({ registry, outliers, placing, log }: ReceivePassParts): ReceivePass {
  function failed(eventId: EventId, error: unknown): Received {
    log.error({ err: error, eventId }, 'an event of another server could not be taken in')
    return dropped('this server failed to take it in', eventId)
  }

  async function take(intake: Intake, read: ReadPdu, isOffered: boolean): Promise<Received | Placed | 'moved'> {
    const { room, origin } = intake
    const { eventId, pdu } = read
    const known = await intake.known(eventId)
    if (known && known.roomNid !== room.nid) return dropped('its id is that of an event of another room', eventId)
    if (known?.hasPlace) return receivedAs(eventId, 'known')
    if (pdu.type === 'm.room.create') {
      // After a join, the create event stays an outlier: placed again, it would be a branch without any other state.
      const isOurs = room.stateNid(room.pending.state, pdu.type, '') === known?.nid
      return isOurs ? receivedAs(eventId, 'known') : dropped('the room has another create event', eventId)
    }
    const around = await intake.around(read, known)
    if (typeof around === 'string') return dropped(around, eventId)
    const cited = await outliers.cite(room, origin, [read], intake.citing)
    if (!judgingIds(room, read).every((id) => cited.has(id)))
      return dropped('its auth events could not be had', eventId)
    const whole: Surroundings = { ...around, cited, isOwnJoin: false, isOffered }
    const placed = await placing.place(room, read, whole)
    if (placed === 'moved') return placed
    if ('standing' in placed) return receivedAs(eventId, placed.standing, placed.reason)
    intake.placed(placed.event, whole)
    return placed
  }

  async function tryToTake(intake: Intake, read: ReadPdu, isOffered: boolean): Promise<Received | Placed | 'moved'> {
    const { room } = intake
    try {
      return await take(intake, read, isOffered)
    } catch (error) {
      // On a room that is dead by now, inconsistencies are no fault of the event.
      const isItsFault = room.alive && !isOutage(error)
      // The room in memory is half changed: whoever comes next loads it again.
      registry.drop(room)
      if (isOutage(error)) throw error
      return isItsFault ? failed(read.eventId, error) : 'moved'
    }
  }

  /** Waits until the placed events are written or refused. */
  async function record(placed: readonly Placed[], { results, isOneByOne }: ReceivedBatch): Promise<void> {
    try {
      for (const { event, outcome } of await settled(placed)) {
        if (outcome === 'committed') results.set(event.id, receivedAs(event.id, event.standing, event.reason))
      }
    } catch (error) {
      const [only] = placed
      if (!isOneByOne || only === undefined || isOutage(error)) throw error
      results.set(only.event.id, failed(only.event.id, error))
    }
  }

  return async (intake, order, batch) => {
    const { room } = intake
    const placed: Placed[] = []
    for (const read of order) {
      if (!room.alive) break
      if (batch.results.get(read.eventId)?.kind === 'dropped') continue
      const one = await tryToTake(intake, read, batch.offered.has(read.eventId))
      if (one === 'moved') break
      if ('kind' in one) batch.results.set(read.eventId, one)
      else placed.push(one)
      if (batch.isOneByOne) await record(placed.splice(0), batch)
    }
    await record(placed, batch)
  }
}

/** Whether the database did not answer. The sender then has to send its events again. */
export function isOutage(error: unknown): boolean {
  return (error as { status?: number }).status === 503
}
