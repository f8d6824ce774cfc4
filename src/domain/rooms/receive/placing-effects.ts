import { redactsOf } from '../../../core/event/content.ts'
import type { EventId } from '../../../core/ids.ts'
import type { StateMap } from '../../../core/state/trie.ts'
import type { HighlightWrite } from '../../../store/events/event-writes.ts'
import { MAX_EARLY_REDACTIONS } from '../../limits.ts'
import type { Branches } from '../room/branches.ts'
import type { Room } from '../room/room.ts'
import type { RoomEvent } from '../room/room-event.ts'
import { highlightsOf } from '../write/highlights.ts'
import { isShownOnlyInEffect, takesEffect } from '../write/redaction.ts'
import type { Case } from './placing-case.ts'
import { ALWAYS_LOOKED_AT, stateLookup } from './placing-checks.ts'

/** What an accepted event does besides. */
export interface Effects {
  readonly redacts: RoomEvent | undefined
  /** Redactions of it that came before it and take effect, the first to come first. */
  readonly redactedBy: readonly RoomEvent[]
  /** It redacts nothing, or nothing yet: no client is shown it. */
  readonly isWithheld: boolean
  /** What it redacts and has not come, or not to its place: an outlier may be in a state, and is then written anew. */
  readonly redactsEarly: EventId | undefined
  readonly highlights: readonly HighlightWrite[]
}

/** Of an event that is kept out of the room. */
export const NO_EFFECTS: Effects = {
  redacts: undefined,
  redactedBy: [],
  isWithheld: false,
  redactsEarly: undefined,
  highlights: [],
}

/** @param before the state before the event */
export async function effectsOf(
  branches: Branches,
  { room, around }: Case,
  event: RoomEvent,
  before: StateMap,
): Promise<Effects> {
  const state = await stateLookup(room, before, ALWAYS_LOOKED_AT)
  const { target } = around
  const named = event.type === 'm.room.redaction' ? redactsOf(room.version, event.pdu) : undefined
  const redacts = target && takesEffect(room, event, target, state) ? target : undefined
  return {
    redacts,
    redactedBy: await effective(branches, room, around.redactions, event),
    isWithheld: redacts === undefined && isShownOnlyInEffect(room, event),
    redactsEarly: target?.hasPlace ? undefined : named,
    highlights: event.type === 'm.room.member' || around.past ? [] : highlightsOf(room, event, state),
  }
}

/** Those of some redactions that take effect on their target, with the state that was before each. */
async function effective(
  branches: Branches,
  room: Room,
  redactions: readonly RoomEvent[],
  target: RoomEvent,
): Promise<RoomEvent[]> {
  const found: RoomEvent[] = []
  for (const redaction of redactions) {
    if (found.length === MAX_EARLY_REDACTIONS) break
    const state = await branches.stateAt(room, redaction.pointBefore)
    if (takesEffect(room, redaction, target, await stateLookup(room, state, ALWAYS_LOOKED_AT))) found.push(redaction)
  }
  return found
}
