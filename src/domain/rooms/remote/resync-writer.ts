import type { Logger } from 'pino'
import { isUserId, type RoomId, type ServerName, type UserId } from '../../../core/ids.ts'
import type { KeyedQueue } from '../../../core/keyed-queue.ts'
import { diffState, forEachState, getState, type StateMap } from '../../../core/state/trie.ts'
import type { Database } from '../../../store/db/db.ts'
import type { ChainWrite } from '../../../store/events/event-writes.ts'
import { getChainParents, type StatePoint } from '../../../store/events/state.ts'
import { removeResyncedPart } from '../../../store/rooms/partial-state-rooms.ts'
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
import type { RoomRegistry } from '../room/registry.ts'
import type { Room } from '../room/room.ts'
import { RoomEvent } from '../room/room-event.ts'
import type { Persister } from '../write/persister.ts'
import { keyWrites, NO_GRAPH, type Outcome, type Unit } from '../write/unit.ts'

/**
 * Checks the state that a server gave for a room with partial state, and writes its members to the log, behind our join.
 *
 * @param isWanted whether the resync should go on; asked repeatedly
 * @returns why this cannot be the room's state; undefined when the room is complete, or the resync is not wanted any more
 */
export type ResyncWriter = (
  partialState: PartialState,
  answer: RoomStateAnswer,
  isWanted: () => boolean,
) => Promise<string | undefined>

export interface ResyncWriterParts {
  readonly serverName: ServerName
  readonly db: Database
  readonly log: Pick<Logger, 'info'>
  readonly users: Users
  readonly registry: RoomRegistry
  readonly persister: Persister
  readonly branches: Branches
  readonly pduChecks: PduChecks
  readonly outliers: Outliers
  readonly roomQueue: KeyedQueue<RoomId>
  /** The state of a room is complete: its readers are to be woken. */
  completed(room: Room): void
}

/** How often a room's members are written again because others wrote to it. */
const MAX_ATTEMPTS = 8
/** Members per commit, so that other writes in between do not wait long. */
const MEMBERS_PER_COMMIT = 1_000
const MEMBER = 'm.room.member'

/** What is written to the log behind a join: at the end of the chain from which the join's chain branches off. */
interface Behind {
  readonly changes: readonly StateChange[]
  /** Moves the start of the join's chain after these changes. */
  readonly chain: ChainWrite
}

export function createResyncWriter(parts: ResyncWriterParts): ResyncWriter {
  const { serverName, db, log, users, registry, outliers, persister } = parts

  async function attempt(
    room: Room,
    partialState: PartialState,
    claimed: ClaimedState,
    isWanted: () => boolean,
  ): Promise<string | undefined> {
    const isAlive = () => room.alive && isWanted()
    const join = (await outliers.find(room, [partialState.joinId])).get(partialState.joinId)!
    const end = await endBehind(room, join)
    if (await db.tx((tx) => removeResyncedPart(tx, room.nid, end))) {
      // An earlier attempt stopped in the middle, and the room in memory counts its members.
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

  /** The end of the chain from which our join's chain branches off. */
  async function endBehind(room: Room, join: RoomEvent): Promise<StatePoint> {
    const end = (await getChainParents(db, room.nid)).get(join.pointBefore.chain)
    if (!end || join.pointBefore.seq !== 0) throw new Error(`${join.id} does not stand at the beginning of a chain`)
    return end
  }

  /** Writes one part after another. No reader finds them in the log until the last part moves the start of the join's chain behind them. */
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
      const members = await membersOf({ room, serverName, users, memberships }, unknownMembers(room, part))
      if (written && (await written).kind !== 'committed') return 'moved'
      if (!room.alive) return 'moved'
      const head = room.pending
      const position = persister.takeNid()
      const unit: Unit = {
        ...NO_GRAPH,
        ...{ room, before: head, after: { ...head, version: head.version + 1, nid: position } },
        ...{ events: [], unread: [], redactions: [], txn: undefined, keys: keyWrites(room), changes: part },
        resynced: at + MEMBERS_PER_COMMIT < changes.length ? [] : [{ ...chain, joinId: partialState.joinId, position }],
        members: members.map((member) => ({ ...member, changedAt: position })),
        // The commit needs a stream position, but adds no event. An outlier takes the position and no client is shown it.
        promoted: [new RoomEvent({ ...create.toRow(), stream_pos: position }, create.pdu)],
      }
      room.enqueued(unit)
      written = persister.enqueue(unit)
      written.catch(() => {})
    }
    if ((await written)!.kind !== 'committed') return 'moved'
    parts.completed(await registry.getByNid(room.nid))
    log.info({ roomId: partialState.roomId, members: changes.length }, 'the resync of a room is complete')
    return undefined
  }

  return (partialState, answer, isWanted) =>
    parts.roomQueue.run(partialState.roomId, async () => {
      const claimed = await orderClaimed(answer, parts.pduChecks.expect, new Set())
      for (let attempts = 0; attempts < MAX_ATTEMPTS && isWanted(); attempts++) {
        const room = await registry.getByNid(partialState.roomNid)
        const outcome = await attempt(room, partialState, claimed, isWanted)
        if (outcome !== 'moved') return outcome
      }
      return 'the room is too busy just now'
    })
}

/** What is missing in the state before our join, as changes from the end of the chain from which the join's chain branches off. */
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

/** The members that these changes add. Whoever joined or left since our join is known already. */
function unknownMembers(room: Room, changes: readonly StateChange[]): Change[] {
  const unknown = changes.filter(({ keyId }) => getState(room.pending.state, keyId) === 0)
  return unknown.map(({ keyId, eventNid }) => {
    return { userId: room.keys.nameOf(keyId).stateKey as UserId, before: 0, after: eventNid }
  })
}

/** Why a claimed state cannot be the room's: it must hold every key that we know, by whatever event. */
function disagreement(
  room: Room,
  known: StateMap,
  claimed: StateMap,
  memberships: ClaimedStateMap['memberships'],
): string | undefined {
  const createKey = room.keys.idOf('m.room.create', '')!
  if (getState(claimed, createKey) !== getState(known, createKey)) return 'it tells of a room with another beginning'
  // Our own join was authorised, so there must be members.
  if (![...memberships.values()].includes('join')) return 'it tells of nobody who is in the room'
  let lacks = false
  diffState(known, claimed, (_key, _before, after) => {
    lacks ||= after === 0
  })
  return lacks ? 'it leaves out what is known of the state' : undefined
}
