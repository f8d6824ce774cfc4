import type { Logger } from 'pino'
import type { Reader } from '../../../store/db/db.ts'
import { softFailedStickyAt } from '../../../store/events/sticky.ts'
import type { Clock } from '../../clock.ts'
import { MAX_APPEALS, MAX_APPEALS_PER_ROOM } from '../../limits/sticky-events.ts'
import { appealsUntil } from './sticky-events.ts'
import { streamed, type Unit } from './unit.ts'

/** A soft-failed event that may be accepted until it is sticky no more. */
export interface Appeal {
  readonly nid: number
  /** Milliseconds. */
  readonly until: number
}

/** The soft-failed events that are judged again when the state of their room changes (MSC4354). */
export interface StickyAppeals {
  of(roomNid: number): readonly Appeal[]
  committed(unit: Unit): void
  missed(): void
  /** Calls a listener when a room has another state, and has appeals. */
  onDue(listener: (roomNid: number) => void): void
}

export async function openStickyAppeals({
  db,
  clock,
  log,
}: {
  readonly db: Reader
  readonly clock: Clock
  readonly log: Logger
}): Promise<StickyAppeals> {
  let rooms = new Map<number, readonly Appeal[]>()
  let count = 0
  let due = (_roomNid: number): void => {}

  function set(roomNid: number, appeals: readonly Appeal[]): void {
    count += appeals.length - (rooms.get(roomNid)?.length ?? 0)
    if (appeals.length === 0) rooms.delete(roomNid)
    else rooms.set(roomNid, appeals)
  }

  function of(roomNid: number): readonly Appeal[] {
    const appeals = rooms.get(roomNid)
    if (appeals === undefined) return NONE
    const now = clock.now()
    const left = appeals.filter(({ until }) => until > now)
    if (left.length < appeals.length) set(roomNid, left)
    return left
  }

  function add(roomNid: number, appeal: Appeal): void {
    if (count >= MAX_APPEALS) for (const each of [...rooms.keys()]) of(each)
    if (count < MAX_APPEALS) set(roomNid, [...of(roomNid), appeal].slice(-MAX_APPEALS_PER_ROOM))
  }

  async function read(): Promise<void> {
    rooms = new Map()
    count = 0
    for (const row of await softFailedStickyAt(db, clock.now(), MAX_APPEALS)) {
      add(row.room_nid, { nid: row.event_nid, until: row.expires_at })
    }
  }

  await read()
  return {
    of,
    committed(unit) {
      const roomNid = unit.room.nid
      for (const event of streamed(unit)) {
        if (event.standing === 'soft-failed') {
          const until = appealsUntil(event, clock.now())
          if (until !== undefined) add(roomNid, { nid: event.nid, until })
        } else if (rooms.has(roomNid)) {
          set(
            roomNid,
            of(roomNid).filter(({ nid }) => nid !== event.nid),
          )
        }
      }
      if (rooms.has(roomNid) && unit.after.state !== unit.before.state) due(roomNid)
    },
    missed() {
      read().catch((err: unknown) => log.error({ err }, 'which sticky events are soft-failed could not be read again'))
    },
    onDue(listener) {
      due = listener
    },
  }
}

const NONE: readonly Appeal[] = []
