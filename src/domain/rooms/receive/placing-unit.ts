import { MAX_PREV_EVENTS } from '../../../core/event/format.ts'
import { clampToSafe } from '../../../core/large-integers.ts'
import { isNotifiable } from '../../../core/push/default-rules.ts'
import { getState } from '../../../core/state/trie.ts'
import { MAX_EXTREMITIES } from '../../limits.ts'
import { authIdsOf, prevIdsOf } from '../room/event-references.ts'
import type { Extremity, Head } from '../room/head.ts'
import type { MembershipChange } from '../room/room.ts'
import { RoomEvent } from '../room/room-event.ts'
import type { Located, StateLog } from '../room/state-log.ts'
import { NO_NOTICE } from '../write/noticing.ts'
import { redactedTarget, released } from '../write/redaction.ts'
import { keyWrites, type Unit } from '../write/unit.ts'
import { unreadNews } from '../write/unread-news.ts'
import { type Case, HISTORY_OFFSET, NOT_NUMBERED, type Site } from './placing-case.ts'
import type { Effects } from './placing-effects.ts'

/** A gap in the timeline leaves this many positions free for missing events. */
export const PLACES_OF_GAP = 2 ** 20

/** What an event changes in the room. */
export interface Consequences {
  readonly log: StateLog
  readonly tips: readonly Extremity[]
  readonly current: Located
  readonly members: readonly Omit<MembershipChange, 'changedAt'>[]
  readonly effects: Effects
}

/** The extremities after an event. It replaces those that it builds on. If it is excluded, the events that build on it replace them. */
export function tipsWith(
  { room, read, around }: Case,
  { head, exclusion }: Site,
  event: RoomEvent,
): readonly Extremity[] {
  if (around.past || (exclusion && !around.isReferenced)) return head.extremities
  const covered = new Set([...prevIdsOf(read.pdu), ...around.passedOver])
  // When no user of ours was in the room, our newest events are older than the join.
  const isStale = around.isOwnJoin && room.localMembers.size === 0
  const others = isStale ? [] : head.extremities.filter(({ id }) => !covered.has(id))
  if (exclusion || (around.isReferenced && others.length > 0)) {
    return others.length === 0 || others.length === head.extremities.length ? head.extremities : others
  }
  const opensBranch = others.length === head.extremities.length
  if (opensBranch && others.length >= MAX_EXTREMITIES) return head.extremities
  // The extremities that wait stay behind those that are resolved, so that nobody can push a branch out by making many.
  const isFirst = head.extremities.slice(0, head.merged).some(({ id }) => covered.has(id))
  const tip = {
    nid: event.nid,
    id: event.id,
    reference: event.reference(room.version),
    after: event.pointAfter,
  }
  return isFirst ? [tip, ...others] : [...others, tip]
}

/**
 * The event as it is stored. Without `consequences` it only serves as input for state resolution. An outlier that is rejected at its place
 * keeps its state key, because claimed states may contain it.
 */
export function eventOf(
  one: Case,
  site: Site,
  { nid, streamPos }: { readonly nid: number; readonly streamPos: number },
  consequences?: Consequences,
): RoomEvent {
  const { room, read, around } = one
  const { pdu } = read
  const { head, at, keyId, exclusion } = site
  const { past } = around
  const { rootId, redactedBy: redactions = [] } = consequences?.effects ?? {}
  const isNotifiableHere = !exclusion && !past && rootId === undefined && redactions.length === 0 && isNotifiable(pdu)
  const replaces = keyId === undefined ? 0 : getState(site.before.state, keyId)
  const after = { chain: at.chain, seq: at.seq + (keyId === undefined ? 0 : 1) }
  const current = exclusion || past ? undefined : consequences?.current.point
  const isOnTip = current === undefined || (current.chain === after.chain && current.seq === after.seq)
  const event = new RoomEvent(
    {
      event_nid: nid,
      room_nid: room.nid,
      room_pos:
        exclusion || consequences?.effects.isWithheld
          ? null
          : (past?.pos ?? head.pos + (leavesGap(one) ? PLACES_OF_GAP : 1)),
      sender_nid: one.senderNid,
      origin_server_ts: clampToSafe(pdu.origin_server_ts),
      notifiable: (past ?? head).notifiable + (isNotifiableHere ? 1 : 0),
      replaces_nid: replaces === 0 ? null : replaces,
      redacted_by: null,
      auth_content: null,
      txn_token: null,
      txn_id: null,
      state_chain: at.chain,
      state_seq: at.seq,
      key_id: keyId ?? around.outlier?.keyId ?? null,
      event_id: read.eventId,
      type: pdu.type,
      standing: exclusion?.standing ?? null,
      reason: exclusion?.reason ?? null,
      stream_pos: past ? streamPos - HISTORY_OFFSET : streamPos === nid ? null : streamPos,
      current_chain: isOnTip ? null : current.chain,
      current_seq: isOnTip ? null : current.seq,
      auth_nids: keyId === undefined ? (around.outlier?.authNids ?? null) : citedNids(one),
      has_relations: false,
      json: read.json,
    },
    pdu,
  )
  const redactedBy = consequences?.effects.redactedBy[0]
  return redactedBy ? redactedTarget(room, redactedBy, event).event : event
}

/** An event that was redacted before it came is unread for nobody. */
function unreadOf(event: RoomEvent, { rootId, notice, redactedBy }: Effects): Unit['unread'] {
  const isRedacted = redactedBy.length > 0
  const news = unreadNews(event, rootId, !isRedacted && isNotifiable(event.pdu), isRedacted ? NO_NOTICE : notice)
  return news ? [news] : []
}

function citedNids({ read, around }: Case): number[] {
  return authIdsOf(read.pdu).map((id) => around.cited.get(id)!.nid)
}

function leavesGap({ read, around }: Case): boolean {
  return around.prevs.length < prevIdsOf(read.pdu).length || around.missingBehind.length > 0
}

/** What is written with an event. @param nextStreamPos gives the stream positions of what the event brings into the stream */
export function unitOf(
  one: Case,
  site: Site,
  consequences: Consequences,
  event: RoomEvent,
  nextStreamPos: () => number,
): Unit {
  const { room, read, around } = one
  const { head, exclusion } = site
  const { log, current, members, effects } = consequences
  const tips = numbered(consequences.tips, event)
  const placed = new Set(around.prevs.map(({ id }) => id))
  const { past } = around
  const isBuiltOn = !exclusion || around.isReferenced || past !== undefined
  const holder = past && !event.isInTimeline ? past.holderNid : event.nid
  const missing = [...prevIdsOf(read.pdu).filter((id) => !placed.has(id)), ...around.missingBehind]
  const early = effects.redactsEarly
  const shown = released(headWith(head, event, tips, log.head(current)), effects.redactedBy, nextStreamPos)
  // Listed one by one: a spread would cost more than all else here.
  return {
    resynced: [],
    room,
    before: head,
    after: shown.head,
    events: around.outlier ? [] : [event],
    promoted: [...(around.outlier ? [event] : []), ...shown.redactions],
    keys: keyWrites(room),
    changes: log.changes,
    chains: log.chains,
    gaps: (isBuiltOn ? missing : []).map((missingId) => ({ roomNid: room.nid, missingId, eventNid: holder })),
    filled: around.isReferenced ? [{ roomNid: room.nid, missingId: event.id }] : [],
    earlyRedactions: early ? [{ roomNid: room.nid, targetId: early, redactionNid: event.nid }] : [],
    members: members.map((member) => ({ ...member, changedAt: event.streamPos })),
    unread: unreadOf(event, effects),
    txn: undefined,
    redactions: effects.redacts ? [redactedTarget(room, event, effects.redacts)] : [],
  }
}

/** The extremities, in which the event may have no number yet. */
function numbered(tips: readonly Extremity[], { nid }: RoomEvent): readonly Extremity[] {
  if (!tips.some((tip) => tip.nid === NOT_NUMBERED)) return tips
  return tips.map((tip) =>
    tip.nid === NOT_NUMBERED ? { nid, id: tip.id, reference: tip.reference, after: tip.after } : tip,
  )
}

function headWith(
  head: Head,
  event: RoomEvent,
  extremities: readonly Extremity[],
  state: ReturnType<StateLog['head']>,
): Head {
  const version = head.version + 1
  const merged = extremities === head.extremities ? head.merged : Math.min(extremities.length, MAX_PREV_EVENTS)
  const isNewest = !event.standing && !event.isHistory
  const isShown = isNewest && event.isInTimeline
  return {
    version,
    extremities,
    merged,
    depth: isNewest && event.pdu.depth > head.depth ? event.pdu.depth : head.depth,
    pos: isShown ? event.pos : head.pos,
    nid: isShown ? event.streamPos : head.nid,
    notifiable: isShown ? event.notifiable : head.notifiable,
    chain: state.chain,
    seq: state.seq,
    state: state.state,
    tip: state.tip,
    lastChain: state.lastChain,
  }
}
