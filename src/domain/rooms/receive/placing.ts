import type { StateLookup } from '../../../core/auth/context.ts'
import { authorise } from '../../../core/auth/rules.ts'
import { authEventKeys, type StateKeyPair } from '../../../core/auth/select.ts'
import { redactsOf } from '../../../core/event/content.ts'
import { MAX_PREV_EVENTS } from '../../../core/event/format.ts'
import type { ReadPdu } from '../../../core/event/read.ts'
import type { EventId, ServerName } from '../../../core/ids.ts'
import { clampToSafe } from '../../../core/large-integers.ts'
import { isNotifiable } from '../../../core/push-rules.ts'
import { EMPTY_STATE, getState, type StateMap, setState } from '../../../core/state/trie.ts'
import type { HighlightWrite } from '../../../store/events/event-writes.ts'
import type { Standing } from '../../../store/events/events.ts'
import type { StatePoint } from '../../../store/events/state.ts'
import { MAX_EARLY_REDACTIONS, MAX_EXTREMITIES } from '../../limits.ts'
import type { Users } from '../../users.ts'
import type { Branches } from '../room/branches.ts'
import { authIdsOf, authoriseByCited, prevIdsOf, reasonOf } from '../room/event-references.ts'
import type { Extremity, Head } from '../room/head.ts'
import { changedMembers } from '../room/members.ts'
import type { MembershipChange, Room } from '../room/room.ts'
import { RoomEvent } from '../room/room-event.ts'
import { beforeChange, type Located, StateLog, whereHeadIs } from '../room/state-log.ts'
import type { Surroundings } from '../room/surroundings.ts'
import { highlightsOf } from '../write/highlights.ts'
import { keyWrites, NO_GRAPH, type Outcome, type Persister, type Unit } from '../write/persister.ts'
import { isShownOnlyInEffect, redactedTarget, released, takesEffect } from '../write/redaction.ts'

export interface Placed {
  readonly event: RoomEvent
  /** Resolves when it is durable, or is not to be. */
  readonly outcome: Promise<Outcome>
}

export interface Placing {
  /**
   * Puts an event in its place in the room: finds the state before it, judges it by what it cites, by that state and by the
   * room's current one, and moves the room's head. Resolves when it is queued; 'moved' when the room was written to by others. An
   * event that is only offered and not accepted is not queued: why not is all that comes of it.
   */
  place(room: Room, read: ReadPdu, around: Surroundings): Promise<Placed | Exclusion | 'moved'>
}

export interface PlacingParts {
  readonly serverName: ServerName
  readonly users: Users
  readonly persister: Persister
  readonly branches: Branches
}

/** A gap in the timeline keeps this many places for what may come to fill it. */
export const PLACES_OF_GAP = 2 ** 20
/** Under every position of the stream: nobody is told of history as of something new. */
const HISTORY_OFFSET = 2 ** 52
/** How often local sends may come between before an event is given up for now. */
const MAX_ATTEMPTS = 32
const ALWAYS_LOOKED_AT: readonly StateKeyPair[] = [
  ['m.room.create', ''],
  ['m.room.power_levels', ''],
]

/** Before a room's first event; the first chain of every room starts there. */
const BEGINNING: Located = { point: { chain: 0, seq: 0 }, state: EMPTY_STATE }

/** Why an event is kept out of the room. */
export interface Exclusion {
  readonly standing: Exclude<Standing, 'outlier'>
  readonly reason: string
}

/** An event to be placed, with its number and its sender's. */
interface Case {
  readonly room: Room
  readonly read: ReadPdu
  readonly around: Surroundings
  readonly nid: number
  readonly senderNid: number
}

/** Where an event stands, by the head that was found. */
interface Site {
  readonly head: Head
  readonly before: Located
  /** The point before it, on the chain that its own change continues. */
  readonly at: StatePoint
  readonly keyId: number | undefined
  readonly exclusion: Exclusion | undefined
}

/** What an accepted event does besides. */
interface Effects {
  readonly redacts: RoomEvent | undefined
  /** Redactions of it that came before it and take effect, the first to come first. */
  readonly redactedBy: readonly RoomEvent[]
  /** It redacts nothing, or nothing yet: no client is shown it. */
  readonly isWithheld: boolean
  /** What it redacts and has not come, or not to its place: an outlier may be in a state, and is then written anew. */
  readonly redactsEarly: EventId | undefined
  readonly highlights: readonly HighlightWrite[]
}

const NO_EFFECTS: Effects = {
  ...{ redacts: undefined, redactedBy: [], isWithheld: false, redactsEarly: undefined, highlights: [] },
}

/** What follows from an event for the room. */
interface Consequences {
  readonly log: StateLog
  readonly tips: readonly Extremity[]
  readonly current: Located
  readonly members: readonly Omit<MembershipChange, 'changedAt'>[]
  readonly effects: Effects
}

export function createPlacing({ serverName, users, persister, branches }: PlacingParts): Placing {
  /** State events under some keys, ready to be looked up. */
  async function lookup(room: Room, state: StateMap, keys: readonly StateKeyPair[]): Promise<StateLookup> {
    const nids = keys.map(([type, stateKey]) => room.stateNid(state, type, stateKey))
    const events = await room.events(nids)
    const found = new Map(keys.map((key, index) => [JSON.stringify(key), events.get(nids[index]!)?.authPdu]))
    return (...key) => found.get(JSON.stringify(key))
  }

  /**
   * The state before an event: what the states after its `prev_events` resolve to. What a server claims in place of that is the outcome
   * already: resolved once more with one of its parts it may come out as another (room version 1).
   */
  async function locateBefore(log: StateLog, { room, around }: Case, head: Head): Promise<Located> {
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

  /** The checks that need other events, in the published order (server-server API, "Checks performed on receipt of a PDU", 4 to 6). */
  async function judge(
    { room, read: { pdu }, around }: Case,
    before: StateMap,
    head: Head,
  ): Promise<Exclusion | undefined> {
    const byCited = authoriseByCited(room, pdu, around.cited)
    if (!byCited.allowed) return { standing: 'rejected', reason: `by its auth events: ${reasonOf(byCited)}` }
    const keys = [...ALWAYS_LOOKED_AT, ...authEventKeys(room.version, pdu)]
    const byState = authorise(room.version, pdu, await lookup(room, before, keys))
    if (!byState.allowed) return { standing: 'rejected', reason: `by the state before it: ${reasonOf(byState)}` }
    if (around.isOwnJoin || around.past || before === head.state || head.extremities.length === 0) return undefined
    // With a gap before it, what we hold to be current may be long past: nobody is to be shut out by what we missed.
    const isBehind = around.claimed !== undefined
    const current = isBehind ? await branches.resolve(room, [head.state, before]) : head.state
    const byCurrent = authorise(room.version, pdu, await lookup(room, current, keys))
    if (byCurrent.allowed) return undefined
    return { standing: 'soft-failed', reason: `by the current state: ${reasonOf(byCurrent)}` }
  }

  /** The current state once an event is taken in: what the states after as many extremities as an event may build on resolve to. */
  async function locateCurrent(
    log: StateLog,
    room: Room,
    { head }: Site,
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

  async function effectsOf({ room, around }: Case, event: RoomEvent, before: StateMap): Promise<Effects> {
    const state = await lookup(room, before, ALWAYS_LOOKED_AT)
    const { target } = around
    const named = event.type === 'm.room.redaction' ? redactsOf(room.version, event.pdu) : undefined
    const redacts = target && takesEffect(room, event, target, state) ? target : undefined
    return {
      redacts,
      redactedBy: await effective(room, around.redactions, event),
      isWithheld: redacts === undefined && isShownOnlyInEffect(room, event),
      redactsEarly: target?.hasPlace ? undefined : named,
      highlights: event.type === 'm.room.member' || around.past ? [] : highlightsOf(room, event, state),
    }
  }

  async function effective(room: Room, redactions: readonly RoomEvent[], target: RoomEvent): Promise<RoomEvent[]> {
    const found: RoomEvent[] = []
    for (const redaction of redactions) {
      if (found.length === MAX_EARLY_REDACTIONS) break
      const state = await branches.stateAt(room, redaction.pointBefore)
      if (takesEffect(room, redaction, target, await lookup(room, state, ALWAYS_LOOKED_AT))) found.push(redaction)
    }
    return found
  }

  /** One try on the head as it stands. Nothing waits between finding it unmoved and queueing what moves it. */
  async function attempt(one: Case): Promise<Placed | Exclusion | 'moved' | 'again'> {
    const { room, read } = one
    const head = room.pending
    const log = new StateLog(room, head, one.around.past !== undefined)
    const before = await locateBefore(log, one, head)
    const exclusion = await judge(one, before.state, head)
    if (exclusion && one.around.isOffered) return exclusion
    const { type, state_key: stateKey } = read.pdu
    const isChange = stateKey !== undefined && exclusion?.standing !== 'rejected'
    const keyId = isChange ? room.keys.intern(type, stateKey) : undefined
    const after = keyId === undefined ? before : log.set(before, keyId, one.nid, exclusion !== undefined)
    const site = { head, before, at: keyId === undefined ? before.point : beforeChange(after.point), keyId, exclusion }
    const fresh = eventOf(one, site, one.nid)
    const tips = tipsWith(one, site, fresh)
    const current = await locateCurrent(log, room, site, after, tips, fresh)
    const changed = { from: head.state, to: current.state, fresh, memberships: one.around.claimedMemberships }
    const members = await changedMembers({ room, serverName, users, ...changed })
    const effects = exclusion ? NO_EFFECTS : await effectsOf(one, fresh, before.state)
    if (!room.alive) return 'moved'
    if (room.pending !== head) return 'again'
    return enqueue(one, site, { log, tips, current, members, effects })
  }

  function enqueue(one: Case, site: Site, consequences: Consequences): Placed {
    const { room, around, nid } = one
    const isNewest = around.outlier === undefined && persister.lastNid() === nid
    const event = eventOf(one, site, isNewest ? nid : persister.takeNid(), consequences)
    const unit = unitOf(one, site, consequences, event, () => persister.takeNid())
    room.enqueued(unit)
    room.keepBranch(
      event.pointAfter,
      site.keyId === undefined ? site.before.state : setState(site.before.state, site.keyId, nid),
    )
    const outcome = persister.enqueue(unit)
    // Whoever waits for it is told of a failure; until then others are placed.
    outcome.catch(() => undefined)
    return { event, outcome }
  }

  return {
    async place(room, read, around) {
      const { sender } = read.pdu
      const senderNid = (await users.intern([sender])).get(sender)!
      const nid = around.outlier?.nid ?? persister.takeNid()
      const one = { room, read, around, nid, senderNid }
      for (let tries = 0; tries < MAX_ATTEMPTS; tries++) {
        const placed = await attempt(one)
        if (placed !== 'again') return placed
      }
      return 'moved'
    },
  }
}

/** The extremities with an event: it takes the place of those it builds on, or where it is excluded, what builds on it does. */
function tipsWith({ room, read, around }: Case, { head, exclusion }: Site, event: RoomEvent): readonly Extremity[] {
  if (around.past || (exclusion && !around.isReferenced)) return head.extremities
  const covered = new Set([...prevIdsOf(read.pdu), ...around.passedOver])
  // Where nobody of ours was, what we held to be the newest is older than the join.
  const isStale = around.isOwnJoin && room.localMembers.size === 0
  const others = isStale ? [] : head.extremities.filter(({ id }) => !covered.has(id))
  if (exclusion || (around.isReferenced && others.length > 0)) {
    return others.length === 0 || others.length === head.extremities.length ? head.extremities : others
  }
  const opensBranch = others.length === head.extremities.length
  if (opensBranch && others.length >= MAX_EXTREMITIES) return head.extremities
  // Those that wait stay behind those that are resolved, so that nobody can push a branch out by making many.
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
 * The event as it is stored. Without `consequences` it is good only to be resolved with others. An outlier that is rejected in its
 * place may be in states that other servers claim: there it stays.
 */
function eventOf(one: Case, site: Site, streamPos: number, consequences?: Consequences): RoomEvent {
  const { room, read, around, nid } = one
  const { pdu } = read
  const { head, at, keyId, exclusion } = site
  const { past } = around
  const isNotifiableHere = !exclusion && !past && isNotifiable(pdu)
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
      json: read.json,
    },
    pdu,
  )
  const redactedBy = consequences?.effects.redactedBy[0]
  return redactedBy ? redactedTarget(room, redactedBy, event).event : event
}

function citedNids({ read, around }: Case): number[] {
  return authIdsOf(read.pdu).map((id) => around.cited.get(id)!.nid)
}

function leavesGap({ read, around }: Case): boolean {
  return around.prevs.length < prevIdsOf(read.pdu).length || around.missingBehind.length > 0
}

function unitOf(
  one: Case,
  site: Site,
  consequences: Consequences,
  event: RoomEvent,
  nextStreamPos: () => number,
): Unit {
  const { room, read, around } = one
  const { head, exclusion } = site
  const { log, tips, current, members, effects } = consequences
  const placed = new Set(around.prevs.map(({ id }) => id))
  const { past } = around
  const isBuiltOn = !exclusion || around.isReferenced || past !== undefined
  const holder = past && !event.isInTimeline ? past.holderNid : event.nid
  const missing = [...prevIdsOf(read.pdu).filter((id) => !placed.has(id)), ...around.missingBehind]
  const early = effects.redactsEarly
  const shown = released(headWith(head, event, tips, log.head(current)), effects.redactedBy, nextStreamPos)
  return {
    ...NO_GRAPH,
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
    highlights: effects.highlights,
    txn: undefined,
    redactions: effects.redacts ? [redactedTarget(room, event, effects.redacts)] : [],
  }
}

function headWith(
  head: Head,
  event: RoomEvent,
  extremities: readonly Extremity[],
  state: ReturnType<StateLog['head']>,
): Head {
  const version = head.version + 1
  const merged = extremities === head.extremities ? head.merged : Math.min(extremities.length, MAX_PREV_EVENTS)
  const moved = { ...head, ...state, extremities, merged, version }
  if (event.standing || event.isHistory) return moved
  const { pos, streamPos: nid, notifiable, pdu } = event
  const depth = pdu.depth > head.depth ? pdu.depth : head.depth
  return event.isInTimeline ? { ...moved, pos, nid, notifiable, depth } : { ...moved, depth }
}
