import type { Logger } from 'pino'
import { ProtocolError } from '../../../core/errors.ts'
import { isUserId, type RoomId, type ServerName, type UserId } from '../../../core/ids.ts'
import type { KeyedQueue } from '../../../core/keyed-queue.ts'
import { diffState, forEachState, getState, type StateMap } from '../../../core/state/trie.ts'
import type { Peers } from '../../../outbound/peers.ts'
import type { Database } from '../../../store/db/db.ts'
import type { ChainWrite } from '../../../store/events/event-writes.ts'
import { getChainParents, type StatePoint } from '../../../store/events/state.ts'
import { removeResyncedPart } from '../../../store/rooms/partial-state-rooms.ts'
import { pauseAfter } from '../../backoff.ts'
import type { Random } from '../../clock.ts'
import { Turns } from '../../federation/turns.ts'
import { KICK_LOOKED_AT_AFTER_MS, MAX_RESYNC_SERVERS, MAX_RESYNCS_AT_ONCE } from '../../limits.ts'
import type { Users } from '../../users.ts'
import type { Outliers } from '../receive/outliers.ts'
import type { PduChecks } from '../receive/pdu-checks.ts'
import {
  type ClaimedState,
  type ClaimedStateMap,
  orderClaimed,
  type RoomStateAnswer,
  takeClaimed,
} from '../receive/state-intake.ts'
import type { Branches } from '../room/branches.ts'
import type { StateChange } from '../room/head.ts'
import { type Change, membersOf } from '../room/members.ts'
import type { PartialState } from '../room/partial-state.ts'
import type { PartialStateRooms } from '../room/partial-state-rooms.ts'
import type { RoomRegistry } from '../room/registry.ts'
import type { Room } from '../room/room.ts'
import { RoomEvent } from '../room/room-event.ts'
import { keyWrites, NO_GRAPH, type Outcome, type Persister, type Unit } from '../write/persister.ts'
import type { PartialStateKicks } from './partial-state-kicks.ts'

/** Fetches the members of rooms that were joined without them, and has taken in what other servers sent meanwhile. */
export interface Resync {
  begin(partialState: PartialState): void
  /** Somebody was put out, it is said: where the servers of the room had nothing for us that may be why, and they are asked again soon. */
  hurry(partialState: PartialState): void
  /** Goes on with what was begun before the process ended. @param takeHeld takes in what waits for a room that is whole */
  start(takeHeld: (partialState: PartialState) => Promise<void>): void
  close(): Promise<void>
}

export interface ResyncParts {
  readonly serverName: ServerName
  readonly db: Database
  readonly random: Random
  readonly log: Pick<Logger, 'info' | 'warn'>
  readonly peers: Pick<Peers, 'state'>
  readonly outgoing: { reaches(server: ServerName): boolean }
  readonly users: Users
  readonly registry: RoomRegistry
  readonly persister: Persister
  readonly branches: Branches
  readonly pduChecks: PduChecks
  readonly outliers: Outliers
  readonly roomQueue: KeyedQueue<RoomId>
  readonly partialStateRooms: PartialStateRooms
  readonly kicks: PartialStateKicks
  /** A room is whole: who reads it is to be told. */
  filled(room: Room): void
}

const RETRIES = { firstMs: 500, longestMs: 3_600_000 }
/** How often a room's members are written anew because others wrote to it. */
const MAX_ATTEMPTS = 8
/** Members of one commit: whatever else is written in between waits for no more. */
const MEMBERS_PER_COMMIT = 1_000
const MEMBER = 'm.room.member'

/** The process ends. */
class Closing extends Error {}

/** No server that answers tells this one of the room: none of its users is in it, or so they say. */
class Refused extends Error {}

/** Until a room is tried again. */
interface Rest {
  readonly timer: NodeJS.Timeout
  /** When that began, by the clock of `performance.now()`. */
  readonly since: number
  readonly wasRefused: boolean
}

/** Why a server cannot be used. */
interface Failure {
  readonly reason: string
  readonly kind: 'silent' | 'refused' | 'useless'
}

/** What is written to the log behind a join: at the end of the chain that the join's branches off. */
interface Behind {
  readonly changes: readonly StateChange[]
  /** That the join's chain comes after them. */
  readonly chain: ChainWrite
}

export function createResync(parts: ResyncParts): Resync {
  const { db, log, registry, partialStateRooms, outliers, persister } = parts
  const turns = new Turns(MAX_RESYNCS_AT_ONCE)
  const rests = new Map<PartialState, Rest>()
  /** Those of which somebody was put out while they were worked on. */
  const hurried = new WeakSet<PartialState>()
  const running = new Set<Promise<void>>()
  let takeHeld: ((partialState: PartialState) => Promise<void>) | undefined
  let isClosing = false
  let close: () => void = () => {}
  const closed = new Promise<never>((_, reject) => {
    close = () => reject(new Closing())
  })
  closed.catch(() => {})

  const isWanted = (partialState: PartialState): boolean => partialState.lacksMembers && !isClosing

  /** One attempt; it tries again by itself. */
  async function attempt(partialState: PartialState): Promise<void> {
    try {
      if (partialState.lacksMembers) await fetchMembers(partialState)
      if (partialState.holdsEvents && !isClosing) await takeHeld?.(partialState)
    } catch (error) {
      if (isClosing || !partialState.holdsEvents) return
      const reason = error instanceof Error ? error.message : String(error)
      await partialStateRooms.failed(partialState, reason).catch(() => {})
      const pauseMs = pauseAfter(Math.max(partialState.failures, 1), RETRIES, parts.random)
      log.warn(
        { err: error, roomId: partialState.roomId, failures: partialState.failures, pauseMs },
        'a room could not be filled with its members; it will be tried again',
      )
      rest(partialState, pauseMs, error instanceof Refused)
    }
  }

  function rest(partialState: PartialState, pauseMs: number, wasRefused: boolean): void {
    const isHurried = hurried.delete(partialState) && wasRefused
    const ms = isHurried ? Math.min(pauseMs, KICK_LOOKED_AT_AFTER_MS) : pauseMs
    const timer = setTimeout(begin, ms, partialState).unref()
    rests.set(partialState, { timer, since: performance.now(), wasRefused })
  }

  function hurry(partialState: PartialState): void {
    const resting = rests.get(partialState)
    if (!resting) hurried.add(partialState)
    if (!resting?.wasRefused) return
    clearTimeout(resting.timer)
    const ms = Math.max(resting.since + KICK_LOOKED_AT_AFTER_MS - performance.now(), 0)
    rests.set(partialState, { ...resting, timer: setTimeout(begin, ms, partialState).unref() })
  }

  function begin(partialState: PartialState): void {
    rests.delete(partialState)
    hurried.delete(partialState)
    if (isClosing || takeHeld === undefined) return
    turns.add(() => {
      const work = attempt(partialState).finally(() => running.delete(work))
      running.add(work)
      return work
    })
  }

  /** @throws Error with what the last server said, when none could be used */
  async function fetchMembers(partialState: PartialState): Promise<void> {
    const room = await registry.get(partialState.roomId)
    // The join was never written, or nobody is in the room any more.
    if (room?.nid !== partialState.roomNid || room.localMembers.size === 0) return partialStateRooms.leave(partialState)
    let last = 'no server of the room is known that could be asked'
    const failures: Failure['kind'][] = []
    for (const server of serversToAsk(partialState)) {
      const failure = await fetchFrom(server, partialState)
      if (failure === undefined || !isWanted(partialState)) return
      const { reason, kind } = failure
      last = `${server}: ${reason}`
      failures.push(kind)
      log.info(
        { roomId: partialState.roomId, server, reason },
        'a server could not be used to fill a room with its members',
      )
    }
    if (!failures.includes('refused') || failures.includes('useless')) throw new Error(last)
    await parts.kicks.judge(partialState)
    if (isWanted(partialState)) throw new Refused(last)
  }

  /** The one that let us in, and some of the others: in each round other ones. */
  function serversToAsk({ resident, servers, failures }: PartialState): ServerName[] {
    const others = [...servers].filter((server) => server !== resident)
    const from = others.length === 0 ? 0 : (failures * (MAX_RESYNC_SERVERS - 1)) % others.length
    const all = [resident, ...others.slice(from), ...others.slice(0, from)]
    return all.filter((server) => parts.outgoing.reaches(server)).slice(0, MAX_RESYNC_SERVERS)
  }

  async function fetchFrom(server: ServerName, partialState: PartialState): Promise<Failure | undefined> {
    try {
      const asking = parts.peers.state(server, partialState.roomId, partialState.joinId)
      asking.catch(() => {})
      // Whoever leaves the room waits for nobody, and keeps nobody waiting.
      const answer = await Promise.race([asking, closed, partialState.whole])
      const reason = answer && (await take(partialState, answer))
      return reason === undefined ? undefined : { reason, kind: 'useless' }
    } catch (error) {
      if (!(error instanceof ProtocolError) || error.status === 503) throw error
      return { reason: error.message, kind: error.errcode === 'M_FORBIDDEN' ? 'refused' : 'silent' }
    }
  }

  function take(partialState: PartialState, answer: RoomStateAnswer): Promise<string | undefined> {
    return parts.roomQueue.run(partialState.roomId, async () => {
      const claimed = await orderClaimed(answer, parts.pduChecks.expect, new Set())
      for (let attempts = 0; attempts < MAX_ATTEMPTS && isWanted(partialState); attempts++) {
        const room = await registry.getByNid(partialState.roomNid)
        const outcome = await fill(room, partialState, claimed)
        if (outcome !== 'moved') return outcome
      }
      return 'the room is too busy just now'
    })
  }

  async function fill(room: Room, partialState: PartialState, claimed: ClaimedState): Promise<string | undefined> {
    const isAlive = () => room.alive && isWanted(partialState)
    const join = (await outliers.find(room, [partialState.joinId])).get(partialState.joinId)!
    const end = await endBehind(room, join)
    if (await db.tx((tx) => removeResyncedPart(tx, room.nid, end))) {
      // An earlier attempt ended in the middle, and the room as it is in memory counts its members.
      registry.drop(room)
      return 'moved'
    }
    const { map, memberships } = await takeClaimed(parts, room, claimed, partialState.joinId, isAlive)
    if (!isAlive()) return 'moved'
    const before = await parts.branches.stateAt(room, join.pointBefore)
    if (!map) return 'it tells two events for one key, or one of another room'
    const refusal = disagreement(room, before, map, memberships)
    if (refusal !== undefined) return refusal
    return write(room, partialState, behind(room, join, end, { before, claimed: map }), memberships)
  }

  /** The end of the chain that our join's branches off. */
  async function endBehind(room: Room, join: RoomEvent): Promise<StatePoint> {
    const end = (await getChainParents(db, room.nid)).get(join.pointBefore.chain)
    if (!end || join.pointBefore.seq !== 0) throw new Error(`${join.id} does not stand at the beginning of a chain`)
    return end
  }

  /** A part at a time. Nobody finds it in the log before the chain of the join is moved behind it, with the last part. */
  async function write(
    room: Room,
    partialState: PartialState,
    { changes, chain }: Behind,
    memberships: ClaimedStateMap['memberships'],
  ): Promise<'moved' | undefined> {
    const createNid = room.stateNid(room.pending.state, 'm.room.create', '')
    const create = (await room.events([createNid])).get(createNid)!
    let written: Promise<Outcome> | undefined
    for (let at = 0; at === 0 || at < changes.length; at += MEMBERS_PER_COMMIT) {
      const part = changes.slice(at, at + MEMBERS_PER_COMMIT)
      const members = await membersOf({ ...parts, room, memberships }, unknownMembers(room, part))
      if (written && (await written).kind !== 'committed') return 'moved'
      if (!room.alive) return 'moved'
      const head = room.pending
      const position = persister.takeNid()
      const unit: Unit = {
        ...NO_GRAPH,
        ...{ room, before: head, after: { ...head, version: head.version + 1, nid: position } },
        ...{ events: [], highlights: [], redactions: [], txn: undefined, keys: keyWrites(room), changes: part },
        resynced: at + MEMBERS_PER_COMMIT < changes.length ? [] : [{ ...chain, joinId: partialState.joinId, position }],
        members: members.map((member) => ({ ...member, changedAt: position })),
        // No event comes with it, and the stream is to have a position for it: an outlier has one that nobody is shown.
        promoted: [new RoomEvent({ ...create.toRow(), stream_pos: position }, create.pdu)],
      }
      room.enqueued(unit)
      written = persister.enqueue(unit)
      written.catch(() => {})
    }
    if ((await written)!.kind !== 'committed') return 'moved'
    parts.filled(await registry.getByNid(room.nid))
    log.info({ roomId: partialState.roomId, members: changes.length }, 'a room was filled with its members')
    return undefined
  }

  return {
    begin,
    hurry,
    start(given) {
      takeHeld = given
      for (const partialState of partialStateRooms.all()) begin(partialState)
    },
    async close() {
      isClosing = true
      close()
      for (const { timer } of rests.values()) clearTimeout(timer)
      await Promise.all(running)
    },
  }
}

/** What is missing in the state before our join, as changes from the end of the chain that the join's branches off. */
function behind(
  room: Room,
  join: RoomEvent,
  end: StatePoint,
  { before, claimed }: { readonly before: StateMap; readonly claimed: StateMap },
): Behind {
  const { chain } = end
  let { seq } = end
  const changes: StateChange[] = []
  forEachState(claimed, (keyId, eventNid) => {
    const { type, stateKey } = room.keys.nameOf(keyId)
    if (type !== MEMBER || !isUserId(stateKey) || getState(before, keyId) !== 0) return
    changes.push({ chain, seq: ++seq, keyId, eventNid, before: 0 })
  })
  return { changes, chain: { roomNid: room.nid, chain: join.pointBefore.chain, parentChain: chain, parentSeq: seq } }
}

/** What changes behind a join make of the members; whoever has come or gone since is known already. */
function unknownMembers(room: Room, changes: readonly StateChange[]): Change[] {
  const unknown = changes.filter(({ keyId }) => getState(room.pending.state, keyId) === 0)
  return unknown.map(({ keyId, eventNid }) => {
    return { userId: room.keys.nameOf(keyId).stateKey as UserId, before: 0, after: eventNid }
  })
}

/** Why what a server claims cannot be the state of the room: what we know of it has to be there, by whatever event. */
function disagreement(
  room: Room,
  known: StateMap,
  claimed: StateMap,
  memberships: ClaimedStateMap['memberships'],
): string | undefined {
  const createKey = room.keys.idOf('m.room.create', '')!
  if (getState(claimed, createKey) !== getState(known, createKey)) return 'it tells of a room with another beginning'
  // Somebody let us in.
  if (![...memberships.values()].includes('join')) return 'it tells of nobody who is in the room'
  let lacks = false
  diffState(known, claimed, (_key, _before, after) => {
    lacks ||= after === 0
  })
  return lacks ? 'it leaves out what is known of the state' : undefined
}
