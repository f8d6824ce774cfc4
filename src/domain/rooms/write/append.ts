import { authorise } from '../../../core/auth/rules.ts'
import { authEventKeys } from '../../../core/auth/select.ts'
import { ProtocolError } from '../../../core/errors.ts'
import { buildEvent, checkBuilt, nextDepth } from '../../../core/event/build.ts'
import { displayNameOf, membershipOf } from '../../../core/event/content.ts'
import type { Verdict } from '../../../core/event/format.ts'
import { type EventId, type RoomId, type ServerName, serverOf, type UserId } from '../../../core/ids.ts'
import { createKeyedQueue } from '../../../core/keyed-queue.ts'
import { isNotifiable } from '../../../core/push/default-rules.ts'
import type { SigningKey } from '../../../core/signing/key.ts'
import { getState, type StateMap } from '../../../core/state/trie.ts'
import type { Clock, Random } from '../../clock.ts'
import type { EventThread } from '../../push/thread-followers.ts'
import type { Users } from '../../users.ts'
import type { EventCache } from '../room/event-cache.ts'
import type { Head } from '../room/head.ts'
import { notInRoom } from '../room/not-in-room.ts'
import type { RoomRegistry } from '../room/registry.ts'
import type { MembershipChange, Room } from '../room/room.ts'
import { RoomEvent } from '../room/room-event.ts'
import { beforeChange, StateLog, whereHeadIs } from '../room/state-log.ts'
import { wholeRoom } from '../room/whole-room.ts'
import { Approval } from './approval.ts'
import {
  concernsUnknownMember,
  type Draft,
  membersIn,
  replacesOthers,
  type StateReader,
  type Transaction,
  threadsOf,
  txnWrite,
} from './draft.ts'
import { isNeed, type Need, NeedsApproval, NeedsReaders, NeedsState, NeedsTargets } from './needs.ts'
import type { Noticing } from './noticing.ts'
import type { Persister } from './persister.ts'
import { isDraftBeyondPolicy, type PolicyGate } from './policy-gate.ts'
import { prepareRedaction, type Redaction } from './redaction.ts'
import { keyWrites, type Unit } from './unit.ts'
import { unreadNews } from './unread-news.ts'

/**
 * Decides what to append to the current state of a room. Called again when the room moves before the events are written, or when another
 * write changed the state that the drafts would replace.
 */
export type Plan = (room: Room) => readonly Draft[] | Promise<readonly Draft[]>

export interface Appended {
  readonly room: Room
  /** In the order of the drafts. For a repeated transaction, the one event that the first request made. */
  readonly eventIds: readonly EventId[]
}

export interface AppendParts {
  readonly serverName: ServerName
  readonly signingKey: SigningKey
  readonly clock: Clock
  readonly random: Random
  readonly users: Users
  readonly events: EventCache
  readonly registry: RoomRegistry
  readonly persister: Persister
  readonly policies: PolicyGate
  readonly noticing: Noticing
}

export interface Appender {
  /**
   * Builds, authorises, signs and stores events of local users, all or none. Resolves when they are durable.
   *
   * @throws ProtocolError `M_FORBIDDEN` when there is no such room, or the auth rules refuse one of them
   */
  append(roomId: RoomId, plan: Plan, transaction?: Transaction): Promise<Appended>
  /** The same for a room object: a new room, which its first event creates. */
  appendTo(room: Room, drafts: readonly Draft[], transaction?: Transaction): Promise<Appended | 'moved'>
}

/** How often a write is built again because other writes came first. */
const MAX_ATTEMPTS = 8
/** How often a write is planned again because other writes set the same state. Each time, one of those succeeded. */
const MAX_PLANS = 256

type Written = Promise<Appended | 'moved' | 'outdated'>

export function createAppender(parts: AppendParts): Appender {
  const approved = createKeyedQueue<number>()

  async function append(roomId: RoomId, plan: Plan, transaction?: Transaction): Promise<Appended> {
    let attempts = 0
    for (let plans = 0; plans < MAX_PLANS && attempts < MAX_ATTEMPTS; plans++) {
      const room = await parts.registry.get(roomId)
      if (!room) throw notInRoom()
      const planned = room.pending.state
      const drafts = await plan(room)
      if (drafts.length === 0) {
        if (await isDurable(room)) return { room, eventIds: [] }
        attempts++
      } else if (concernsUnknownMember(room, drafts)) {
        await wholeRoom(parts.registry, room)
        attempts++
      } else {
        const appended = await write(room, drafts, planned, transaction)
        if (typeof appended === 'object') return appended
        if (appended === 'moved') attempts++
      }
    }
    throw new ProtocolError('M_UNKNOWN', 'The room is too busy just now. Send the request again.', { status: 503 })
  }

  /** Whether the state behind an empty plan is written. Until it is, the caller could get an answer that never becomes true. */
  async function isDurable(room: Room): Promise<boolean> {
    if (!room.isSettled) await parts.persister.idle()
    return room.alive
  }

  /** In a room with a policy server, one write after another: each waits for its signatures, and would move the head under the others. */
  function write(room: Room, drafts: readonly Draft[], planned: StateMap, transaction?: Transaction): Written {
    if (!parts.policies.mayApply(room) || drafts.every(isDraftBeyondPolicy))
      return writeOne(room, drafts, planned, transaction)
    const fixed = drafts.map((draft) => ({ ts: parts.clock.now(), eventId: opaqueEventId(parts), ...draft }))
    const approval = new Approval(room, parts.policies)
    return approved.run(room.nid, () => writeOne(room, fixed, planned, transaction, approval))
  }

  /** @param planned the state that the drafts were made for */
  async function writeOne(
    room: Room,
    drafts: readonly Draft[],
    planned: StateMap,
    transaction?: Transaction,
    approval?: Approval,
  ): Written {
    const redactions = await loadRedactions(room, drafts)
    const threads = await threadsOf(room, drafts, parts.noticing)
    const members = membersIn(drafts)
    let targets = parts.users.known(members)
    // Keeps what was read until the end, because the cache may drop it.
    const read: RoomEvent[] = []
    for (;;) {
      if (!room.alive) return 'moved'
      if (replacesOthers(room, drafts, planned)) return 'outdated'
      const unit = tryBuild(room, drafts, { targets, redactions, threads, transaction, read, approval })
      if (unit instanceof NeedsApproval) await approval?.ask(unit.events)
      else if (unit instanceof NeedsState) read.push(...(await room.events(unit.nids)).values())
      else if (unit instanceof NeedsReaders) await unit.load()
      else if (unit instanceof NeedsTargets) targets = await parts.users.intern(members)
      else return enqueue(unit)
    }
  }

  /** There must be no await between building on a head and queueing the unit that moves it. */
  async function enqueue(unit: Unit): Promise<Appended | 'moved'> {
    const { room } = unit
    room.enqueued(unit)
    const outcome = await parts.persister.enqueue(unit)
    if (outcome.kind === 'moved') return 'moved'
    if (outcome.kind === 'repeated') return { room, eventIds: [outcome.eventId as EventId] }
    return { room, eventIds: unit.events.map(({ id }) => id) }
  }

  async function loadRedactions(room: Room, drafts: readonly Draft[]): Promise<Map<Draft, Redaction>> {
    const found = new Map<Draft, Redaction>()
    for (const draft of drafts) {
      if (draft.type !== 'm.room.redaction' || draft.redacts === undefined) continue
      found.set(draft, await prepareRedaction(room, parts.events, draft.redacts))
    }
    return found
  }

  function tryBuild(...input: BuildInput): Unit | Need {
    try {
      return buildUnit(parts, ...input)
    } catch (error) {
      if (isNeed(error)) return error
      throw error
    }
  }

  return {
    append,
    async appendTo(room, drafts, transaction) {
      const appended = await write(room, drafts, room.pending.state, transaction)
      return appended === 'outdated' ? 'moved' : appended
    },
  }
}

interface Loaded {
  readonly targets: ReadonlyMap<UserId, number>
  readonly redactions: ReadonlyMap<Draft, Redaction>
  readonly threads: ReadonlyMap<Draft, EventThread>
  readonly transaction: Transaction | undefined
  readonly read: readonly RoomEvent[]
  readonly approval: Approval | undefined
}
type BuildInput = [room: Room, drafts: readonly Draft[], loaded: Loaded]

interface Collected {
  /** The state that was read for this write. */
  readonly read: readonly RoomEvent[]
  readonly events: RoomEvent[]
  readonly log: StateLog
  readonly members: MembershipChange[]
  readonly unread: Unit['unread'][number][]
  readonly redactions: Unit['redactions'][number][]
}

function buildUnit(parts: AppendParts, ...[room, drafts, loaded]: BuildInput): Unit {
  const { read, approval } = loaded
  const before = room.pending
  const log = new StateLog(room, before)
  const collected: Collected = { read, events: [], log, members: [], unread: [], redactions: [] }
  const firstNew = room.keys.size
  try {
    let head = before
    for (const draft of drafts) {
      head = buildOne(parts, room, head, draft, collected, loaded)
    }
    const events = approval ? approval.signed(collected.events) : collected.events
    // Listed one by one: a spread would cost more than all else here.
    return {
      promoted: [],
      resynced: [],
      gaps: [],
      filled: [],
      earlyRedactions: [],
      room,
      before,
      after: head,
      events,
      members: collected.members,
      unread: collected.unread,
      redactions: collected.redactions,
      changes: log.changes,
      chains: log.chains,
      keys: keyWrites(room),
      txn: txnWrite(room, collected.events[0], loaded.transaction),
    }
  } catch (error) {
    room.keys.truncate(firstNew)
    throw error
  }
}

/** Builds one event on a head. Returns the head after it. */
function buildOne(
  parts: AppendParts,
  room: Room,
  head: Head,
  draft: Draft,
  collected: Collected,
  { targets, redactions, threads, transaction }: Loaded,
): Head {
  const { version } = room
  const state = stateReader(room, head, collected)
  const ts = draft.ts ?? parts.clock.now()
  const depth = nextDepth(version, head.depth)
  const prev = head.extremities.slice(0, head.merged)
  const authEvents = authEventsOf(room, draft, state)
  // A plain literal: spreads here cost 5 to 8% of a send.
  const built = buildEvent(
    version,
    {
      type: draft.type,
      sender: draft.sender,
      content: draft.content,
      state_key: draft.stateKey,
      redacts: draft.redacts,
      stickyMs: draft.stickyMs,
      origin_server_ts: ts,
      depth,
      prev_events: prev.map(({ reference }) => reference),
      auth_events: authEvents.map((event) => event.reference(version)),
      room_id: version.roomIdIsCreateHash && head.version === 0 ? undefined : room.id,
      event_id: version.eventIdFormat === 'opaque' ? (draft.eventId ?? opaqueEventId(parts)) : undefined,
    },
    parts.serverName,
    parts.signingKey,
  )
  mustBeAllowed(checkBuilt(version, built))
  mustBeAllowed(authorise(version, built.pdu, (type, stateKey) => state(type, stateKey)?.authPdu))

  const keyId = draft.stateKey === undefined ? undefined : room.keys.intern(draft.type, draft.stateKey)
  const replaces = keyId === undefined ? 0 : getState(head.state, keyId)
  const nid = parts.persister.takeNid()
  const before = whereHeadIs(head)
  const after = keyId === undefined ? before : collected.log.set(before, keyId, nid)
  const at = keyId === undefined ? before.point : beforeChange(after.point)
  const thread = threads.get(draft)
  const counts = isNotifiable(built.pdu)
  const notifiable = head.notifiable + (counts && thread === undefined ? 1 : 0)
  const event = RoomEvent.built(
    {
      event_nid: nid,
      room_nid: room.nid,
      room_pos: head.pos + 1,
      sender_nid: draft.senderNid,
      origin_server_ts: ts,
      notifiable,
      replaces_nid: replaces === 0 ? null : replaces,
      redacted_by: null,
      txn_token: transaction?.tokenNid ?? null,
      txn_id: transaction?.txnId ?? null,
      state_chain: at.chain,
      state_seq: at.seq,
      key_id: keyId ?? null,
      event_id: built.eventId,
      type: draft.type,
      standing: null,
      reason: null,
      stream_pos: null,
      auth_content: null,
      current_chain: null,
      current_seq: null,
      auth_nids: keyId === undefined ? null : authEvents.map(({ nid }) => nid),
      has_relations: false,
      json: built.json,
    },
    built.pdu,
  )
  collected.events.push(event)
  if (draft.type === 'm.room.member' && draft.stateKey !== undefined) {
    collected.members.push(membershipChange(parts, room, event, replaces, targets, collected))
  }
  const redaction = redactions.get(draft)
  if (redaction) collected.redactions.push(redaction.apply(event, state))
  const notice = parts.noticing.of(room, event, (type, stateKey) => state(type, stateKey)?.authPdu, thread)
  const news = unreadNews(event, thread?.rootId, counts, notice)
  if (news) collected.unread.push(news)
  return {
    version: head.version + 1,
    extremities: [
      { nid: event.nid, id: event.id, reference: built.reference, after: event.pointAfter },
      ...head.extremities.slice(head.merged),
    ],
    merged: 1,
    depth,
    pos: event.pos,
    nid: event.nid,
    notifiable,
    ...collected.log.head(after),
  }
}

function stateReader(room: Room, head: Head, collected: Collected): StateReader {
  return (type, stateKey) => {
    const nid = room.stateNid(head.state, type, stateKey)
    if (nid === 0) return undefined
    const event = eventAtHand(room, nid, collected)
    if (!event) throw new NeedsState([nid])
    return event
  }
}

function eventAtHand(room: Room, nid: number, { events, read }: Collected): RoomEvent | undefined {
  const isIt = (event: RoomEvent) => event.nid === nid
  return room.fact(nid) ?? events.find(isIt) ?? read.find(isIt)
}

function authEventsOf(room: Room, draft: Draft, state: StateReader): RoomEvent[] {
  const { type, sender, content, stateKey: state_key } = draft
  const keys = authEventKeys(room.version, { type, sender, content, state_key })
  return keys.flatMap((key) => state(...key) ?? [])
}

function opaqueEventId({ random, serverName }: AppendParts): EventId {
  return `$${random.bytes(18).toString('base64url')}:${serverName}` as EventId
}

function mustBeAllowed(verdict: Verdict): void {
  if (!verdict.allowed) throw new ProtocolError(verdict.errcode ?? 'M_FORBIDDEN', verdict.reason)
}

function membershipChange(
  parts: AppendParts,
  room: Room,
  event: RoomEvent,
  replaces: number,
  targets: ReadonlyMap<UserId, number>,
  collected: Collected,
): MembershipChange {
  const userId = event.pdu.state_key as UserId
  const userNid = targets.get(userId)
  if (userNid === undefined) throw new NeedsTargets()
  const before = replaces === 0 ? undefined : eventAtHand(room, replaces, collected)
  return {
    userNid,
    userId,
    isLocal: serverOf(userId) === parts.serverName,
    displayName: displayNameOf(event),
    before: before && membershipOf(before),
    after: membershipOf(event),
    eventNid: event.nid,
    changedAt: event.nid,
  }
}
