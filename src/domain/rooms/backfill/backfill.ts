import type { Logger } from 'pino'
import { ProtocolError } from '../../../core/errors.ts'
import type { ReadPdu } from '../../../core/event/read.ts'
import type { EventId, RoomId, ServerName } from '../../../core/ids.ts'
import type { KeyedQueue } from '../../../core/keyed-queue.ts'
import type { Peers } from '../../../outbound/peers.ts'
import { getGaps } from '../../../store/events/gaps.ts'
import type { Clock } from '../../clock.ts'
import {
  MAX_EVENTS_PER_ANSWER,
  MAX_GAP_IDS,
  MAX_REMEMBERED_UNFILLED_GAPS,
  UNFILLED_GAP_RESTS_MS,
} from '../../limits.ts'
import { PLACES_OF_GAP } from '../receive/placing-unit.ts'
import type { EventCache } from '../room/event-cache.ts'
import type { RoomRegistry } from '../room/registry.ts'
import type { Room } from '../room/room.ts'
import { type Gap, preparePiece } from './history-piece.ts'
import { type HistoryPlacingParts, placePiece } from './history-placing.ts'
import { serversWithHistory } from './history-servers.ts'

/**
 * `whole`: nothing is missing there. `filled`: some or all of it came. `unfilled`: no server has it, or none answers. `underway`: a query
 * is still running.
 */
export type GapOutcome = 'whole' | 'filled' | 'unfilled' | 'underway'

/** Fetches history that this server lacks from others in the room, a piece at a time (server-server API, `GET backfill`). */
export interface Backfill {
  /**
   * Fetches what may be missing between two adjacent places of a room's timeline. Calls for a room share a query that is already running.
   *
   * @param waitMs how long this caller waits; the query goes on after that
   */
  fill(room: Room, between: Opening, waitMs: number): Promise<GapOutcome>
  /** What is missing between two such places; undefined when nothing is. */
  open(room: Room, between: Opening): Promise<Gap | undefined>
  /** Fetches one event from within a gap, by its id. The gap stays open on both sides. False when no server gives it. */
  bring(room: Room, gap: Gap, of: ServerName, eventId: EventId): Promise<boolean>
}

/** Two adjacent places of a timeline. */
export type Opening = Pick<Gap, 'from' | 'below'>

/** How far above a gap the events that refer to it may be: some of what builds on it may have come already. */
const HOLDERS_WITHIN = 2 ** 12

export interface BackfillParts extends HistoryPlacingParts {
  readonly serverName: ServerName
  readonly clock: Clock
  readonly log: Pick<Logger, 'info' | 'warn'>
  readonly events: EventCache
  readonly registry: RoomRegistry
  readonly roomQueue: KeyedQueue<RoomId>
  readonly peers: Pick<Peers, 'backfill'>
}

export function createBackfill(parts: BackfillParts): Backfill {
  const { db, clock, log, events, registry, roomQueue, pduChecks } = parts
  const running = new Map<RoomId, Promise<GapOutcome>>()
  /** Gaps that no server could fill, by the first missing event, with the time until which nobody is asked again. */
  const resting = new Map<EventId, number>()

  async function open(room: Room, { from, below }: Opening): Promise<Gap | undefined> {
    const rows = await getGaps(db, room.nid, from, from + HOLDERS_WITHIN, MAX_GAP_IDS)
    const nid = rows[0]?.event_nid
    const holder = nid === undefined ? undefined : (await events.load([nid])).get(nid)
    return holder && { holder, missing: [...new Set(rows.map(({ missing_id }) => missing_id))], from, below }
  }

  async function ask(room: Room, of: ServerName, gap: Gap): Promise<number> {
    const given = await parts.peers.backfill(of, room.id, gap.missing, MAX_EVENTS_PER_ANSWER)
    return take(room, of, gap, await pduChecks.checkAll(room, given.slice(0, MAX_EVENTS_PER_ANSWER)))
  }

  async function take(room: Room, of: ServerName, gap: Gap, reads: readonly ReadPdu[]): Promise<number> {
    const piece = await preparePiece(parts, room, of, gap, reads)
    if (!piece) return 0
    return roomQueue.run(room.id, async () => {
      const present = await registry.get(room.id)
      return present && present.localMembers.size > 0 ? placePiece(parts, present, of, gap, piece) : 0
    })
  }

  async function askAll(room: Room, gap: Gap): Promise<GapOutcome> {
    for (const server of await serversWithHistory(db, room, gap.holder, parts.serverName)) {
      try {
        const count = await ask(room, server, gap)
        if (count > 0) return 'filled'
        log.info({ roomId: room.id, server }, 'a server had nothing of the history that is missing')
      } catch (error) {
        if (!(error instanceof ProtocolError)) throw error
        log.info({ roomId: room.id, server, reason: error.message }, 'a server gave no history')
      }
    }
    rest(gap)
    return 'unfilled'
  }

  function rest({ missing }: Gap): void {
    const oldest = resting.keys().next()
    if (resting.size >= MAX_REMEMBERED_UNFILLED_GAPS && !oldest.done) resting.delete(oldest.value)
    resting.set(missing[0]!, clock.now() + UNFILLED_GAP_RESTS_MS)
  }

  function start(room: Room, gap: Gap): Promise<GapOutcome> {
    const outcome = askAll(room, gap)
      .catch((err): GapOutcome => {
        log.warn({ err, roomId: room.id }, 'history could not be taken in')
        rest(gap)
        return 'unfilled'
      })
      .finally(() => running.delete(room.id))
    running.set(room.id, outcome)
    return outcome
  }

  return {
    open,
    async bring(room, gap, of, eventId) {
      const { from, below } = gap
      if (from - below < 2 * HOLDERS_WITHIN) return false
      const place = Math.max(Math.floor((from + below) / 2), from - PLACES_OF_GAP)
      const reads = await pduChecks.checkAll(room, await parts.queries.events(of, room.id, [eventId]))
      return (await take(room, of, { ...gap, missing: [eventId], from: place + 1 }, reads)) === 1
    },
    async fill(room, between, waitMs) {
      if (room.partialState?.lacksMembers)
        return orUnderway(
          room.partialState.whole.then(() => 'filled'),
          waitMs,
        )
      const gap = running.has(room.id) ? undefined : await open(room, between)
      const outcome = running.get(room.id)
      // The caller reads the timeline again, and sees whether this gap was the one.
      if (outcome)
        return orUnderway(
          outcome.then(() => 'filled'),
          waitMs,
        )
      if (!gap) return 'whole'
      if ((resting.get(gap.missing[0]!) ?? 0) > clock.now()) return 'unfilled'
      return orUnderway(start(room, gap), waitMs)
    },
  }
}

async function orUnderway(outcome: Promise<GapOutcome>, waitMs: number): Promise<GapOutcome> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<GapOutcome>((resolve) => {
    timer = setTimeout(resolve, Math.max(waitMs, 0), 'underway')
  })
  try {
    return await Promise.race([outcome, late])
  } finally {
    clearTimeout(timer)
  }
}
