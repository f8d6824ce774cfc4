import type { StateLookup } from '../../../core/auth/context.ts'
import { redactsOf } from '../../../core/event/content.ts'
import type { EventId } from '../../../core/ids.ts'
import type { StateMap } from '../../../core/state/trie.ts'
import { MAX_EARLY_REDACTIONS } from '../../limits.ts'
import type { EventThread } from '../../push/thread-followers.ts'
import type { Branches } from '../room/branches.ts'
import type { Room } from '../room/room.ts'
import type { RoomEvent } from '../room/room-event.ts'
import { NeedsReaders } from '../write/needs.ts'
import { NO_NOTICE, type Notice, type Noticing } from '../write/noticing.ts'
import { isShownOnlyInEffect, takesEffect } from '../write/redaction.ts'
import type { Case } from './placing-case.ts'
import { ALWAYS_LOOKED_AT, stateLookup } from './placing-checks.ts'

/** What an accepted event causes besides its own place. */
export interface Effects {
  readonly redacts: RoomEvent | undefined
  /** Redactions that arrived before it and take effect, in the order of arrival. */
  readonly redactedBy: readonly RoomEvent[]
  /** Whether it is hidden from clients: a redaction that redacts nothing, or nothing yet. */
  readonly isWithheld: boolean
  /**
   * The event that it redacts, if that is missing or has no place yet. An outlier may be in a state, and is written again with its place.
   */
  readonly redactsEarly: EventId | undefined
  readonly notice: Notice
  /** The thread that it is in. */
  readonly rootId: string | undefined
}

/** For an excluded event. */
export const NO_EFFECTS: Effects = {
  redacts: undefined,
  redactedBy: [],
  isWithheld: false,
  redactsEarly: undefined,
  notice: NO_NOTICE,
  rootId: undefined,
}

interface EffectParts {
  readonly branches: Branches
  readonly noticing: Noticing
}

/** @param before the state before the event */
export async function effectsOf(
  { branches, noticing }: EffectParts,
  { room, around }: Case,
  event: RoomEvent,
  before: StateMap,
): Promise<Effects> {
  const state = await stateLookup(room, before, ALWAYS_LOOKED_AT)
  const { target } = around
  const named = event.type === 'm.room.redaction' ? redactsOf(room.version, event.pdu) : undefined
  const thread = await noticing.threadOf(room, {
    isState: event.pdu.state_key !== undefined,
    content: event.content,
  })
  const redacts = target && takesEffect(room, event, target, state) ? target : undefined
  return {
    redacts,
    redactedBy: await effective(branches, room, around.redactions, event),
    isWithheld: redacts === undefined && isShownOnlyInEffect(room, event),
    redactsEarly: target?.hasPlace ? undefined : named,
    notice: around.past ? NO_NOTICE : await noticedBy(noticing, room, event, state, thread),
    rootId: thread?.rootId,
  }
}

/** The redactions that take effect on their target, each checked against the state before it. */
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

async function noticedBy(
  noticing: Noticing,
  room: Room,
  event: RoomEvent,
  state: StateLookup,
  thread: EventThread | undefined,
): Promise<Notice> {
  for (;;) {
    try {
      return noticing.of(room, event, state, thread)
    } catch (error) {
      if (!(error instanceof NeedsReaders)) throw error
      await error.load()
    }
  }
}
