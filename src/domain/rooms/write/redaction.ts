import type { StateLookup } from '../../../core/auth/context.ts'
import { mayAskToRedact, mayRedact, type PowerLevels, readPowerLevels } from '../../../core/auth/power-levels.ts'
import { ProtocolError } from '../../../core/errors.ts'
import { contentForRules, redact } from '../../../core/event/redact.ts'
import type { EventId } from '../../../core/ids.ts'
import { isNotifiable } from '../../../core/push/default-rules.ts'
import { encodeCanonical } from '../../../core/signing/canonical-json.ts'
import type { RedactionWrite } from '../../../store/events/event-writes.ts'
import type { EventCache } from '../room/event-cache.ts'
import type { Head } from '../room/head.ts'
import type { Room } from '../room/room.ts'
import type { RoomEvent } from '../room/room-event.ts'
import type { StateReader } from './draft.ts'
import { relationWrite } from './relation-batch.ts'

/** The effect of a redaction on its target; one commit writes both. */
export interface Redaction {
  /** @throws ProtocolError `M_FORBIDDEN` when the redaction's sender may not redact the target */
  apply(redaction: RoomEvent, state: StateReader): RedactedTarget
}

export type RedactedTarget = RedactionWrite & { readonly event: RoomEvent }

/** Finds the target of a redaction in this room. @throws ProtocolError `M_NOT_FOUND` */
export async function prepareRedaction(room: Room, events: EventCache, targetId: EventId): Promise<Redaction> {
  const target = await events.getById(targetId)
  if (target?.roomNid !== room.nid || !target.isInTimeline)
    throw new ProtocolError('M_NOT_FOUND', 'There is no such event in this room to redact.')
  return {
    apply(redaction, state) {
      const levels = levelsIn(room, (type, stateKey) => state(type, stateKey)?.authPdu)
      const verdict = mayAskToRedact(redaction.sender, target.pdu, levels)
      if (!verdict.allowed) throw new ProtocolError('M_FORBIDDEN', verdict.reason)
      return redactedTarget(room, redaction, target)
    },
  }
}

/**
 * Whether an accepted redaction takes effect on its target.
 *
 * @param state before the redaction
 */
export function takesEffect(room: Room, redaction: RoomEvent, target: RoomEvent, state: StateLookup): boolean {
  return mayRedact(room.version, redaction, target.pdu, levelsIn(room, state)).allowed
}

/**
 * Whether clients see this event only once it has redacted something (room version 3, "Handling redactions"). In such versions the auth
 * rules do not check redactions, so anybody may send one.
 */
export function isShownOnlyInEffect(room: Room, { type, pdu }: RoomEvent): boolean {
  return type === 'm.room.redaction' && pdu.state_key === undefined && !room.version.authRulesCoverRedaction
}

/**
 * Puts redactions whose target has come after it in the timeline, as new events: clients have not seen them yet. Backfilled redactions stay
 * out; they show only on their target.
 *
 * @param nextStreamPos takes the next stream position
 */
export function released(
  head: Head,
  redactions: readonly RoomEvent[],
  nextStreamPos: () => number,
): { readonly head: Head; readonly redactions: readonly RoomEvent[] } {
  let moved = head
  const shown = redactions
    .filter(({ isInTimeline, isHistory }) => !isInTimeline && !isHistory)
    .map((redaction) => {
      const pos = moved.pos + 1
      const nid = nextStreamPos()
      moved = { ...moved, pos, nid }
      return redaction.shownAt(moved)
    })
  return { head: moved, redactions: shown }
}

function levelsIn({ version }: Room, state: StateLookup): PowerLevels {
  return readPowerLevels(version, state('m.room.power_levels', '')?.content, state('m.room.create', ''))
}

/** The first redaction stands, as in the database. */
export function redactedTarget(room: Room, redaction: RoomEvent, target: RoomEvent): RedactedTarget {
  const json = encodeCanonical(redact(room.version, target.pdu))
  const read = contentForRules(room.version, target.type, target.authPdu.content)
  const authContent = read === undefined || !target.isState ? null : encodeCanonical(read)
  return {
    roomNid: room.nid,
    targetNid: target.nid,
    redactionNid: redaction.nid,
    json,
    authContent,
    relation: relationWrite(target),
    place: placeOf(target),
    event: target.redactedBy === undefined ? target.redacted(redaction.nid, json, authContent) : target,
  }
}

function placeOf({ roomNid, pos, pdu, isInTimeline, isHistory, redactedBy }: RoomEvent): RedactionWrite['place'] {
  if (!isInTimeline || isHistory || redactedBy !== undefined) return undefined
  return { roomNid, pos, counted: isNotifiable(pdu), isInMain: pdu.content['m.relates_to'] === undefined }
}
