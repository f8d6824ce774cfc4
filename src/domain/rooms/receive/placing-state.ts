import { MAX_PREV_EVENTS } from '../../../core/event/format.ts'
import { EMPTY_STATE, type StateMap } from '../../../core/state/trie.ts'
import type { Branches } from '../room/branches.ts'
import type { Extremity, Head } from '../room/head.ts'
import type { Room } from '../room/room.ts'
import type { RoomEvent } from '../room/room-event.ts'
import { type Located, type StateLog, whereHeadIs } from '../room/state-log.ts'
import type { Case } from './placing-case.ts'

/** The state before a room's first event. The first chain of every room starts there. */
const BEGINNING: Located = { point: { chain: 0, seq: 0 }, state: EMPTY_STATE }

/**
 * The state before an event: the resolution of the states after its `prev_events`. A state that a server claims is used as it is, because
 * it already is the outcome; another resolution with one of its parts could change it (room version 1).
 */
export async function locateBefore(
  branches: Branches,
  log: StateLog,
  { room, around }: Case,
  head: Head,
): Promise<Located> {
  const points = new Map(around.prevs.map(({ pointAfter }) => [`${pointAfter.chain} ${pointAfter.seq}`, pointAfter]))
  const located: Located[] = []
  for (const point of points.values()) located.push({ point, state: await branches.stateAt(room, point) })
  const nearest = around.past?.near ?? whereHeadIs(head)
  if (around.claimed !== undefined) {
    const claimed = log.locate(around.claimed, [nearest, ...located])
    return around.lacksMembers ? log.branchOff(claimed) : claimed
  }
  if (located.length <= 1) return located[0] ?? BEGINNING
  const states = located.map(({ state }) => state)
  return log.locate(await branches.resolve(room, states), [nearest, ...located])
}

/** The current state after an event: the resolution of the states after the extremities, as many as one event may build on. */
export async function locateCurrent(
  branches: Branches,
  log: StateLog,
  room: Room,
  head: Head,
  after: Located,
  tips: readonly Extremity[],
  fresh: RoomEvent,
): Promise<Located> {
  if (tips === head.extremities) return whereHeadIs(head)
  const [only] = tips
  if (only?.nid === fresh.nid && tips.length === 1) return after
  const states: StateMap[] = []
  for (const { nid, after: point } of tips.slice(0, MAX_PREV_EVENTS)) {
    states.push(nid === fresh.nid ? after.state : await branches.stateAt(room, point))
  }
  return log.locate(await branches.resolve(room, states, fresh), [whereHeadIs(head), after])
}
