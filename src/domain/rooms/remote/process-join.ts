import type { StateLookup } from '../../../core/auth/context.ts'
import { authorise } from '../../../core/auth/rules.ts'
import { authEventKeys, type StateKeyPair } from '../../../core/auth/select.ts'
import { createContentOf } from '../../../core/event/content.ts'
import type { Pdu } from '../../../core/event/format.ts'
import type { ReadPdu } from '../../../core/event/read.ts'
import type { EventId, RoomId, ServerName } from '../../../core/ids.ts'
import type { ReadJson } from '../../../core/json.ts'
import type { RoomVersion } from '../../../core/room-version.ts'
import { getState, type StateMap, setState } from '../../../core/state/trie.ts'
import { nextRoomNid, setRoomVersion } from '../../../store/rooms/rooms.ts'
import { Intake } from '../receive/intake.ts'
import { isRefusal } from '../receive/pdu-checks.ts'
import type { ReceiverParts } from '../receive/receive.ts'
import { dropped, type Received, receivedAs, settled } from '../receive/received.ts'
import { type ClaimedState, orderClaimed, type RoomStateAnswer, takeClaimed } from '../receive/state-intake.ts'
import { authIdsOf, impliedIds, prevIdsOf, reasonOf } from '../room/event-references.ts'
import { membersAreMissing, type PartialState } from '../room/partial-state.ts'
import type { PartialStateRooms } from '../room/partial-state-rooms.ts'
import { emptyRoom, type Room } from '../room/room.ts'
import type { RoomEvent } from '../room/room-event.ts'

/** Joins a room of other servers, with the state that a resident server gave and our join, which it has accepted. */
export type ProcessJoin = (
  resident: ServerName,
  version: RoomVersion,
  roomId: RoomId,
  join: ReadJson,
  answer: RoomStateAnswer,
) => Promise<Received>

export interface ProcessJoinParts extends Omit<ReceiverParts, 'log'> {
  readonly partialStateRooms: PartialStateRooms
  /** Starts the resync that fetches the members left out. */
  readonly resync: (partialState: PartialState) => void
}

/** How often a join is placed again because others wrote to its room. */
const MAX_ATTEMPTS = 8

type Result = Received | 'moved'

const OTHER_VERSION = 'the room is of another version'

export function createProcessJoin(parts: ProcessJoinParts): ProcessJoin {
  const { registry, pduChecks, outliers, placing, roomQueue, partialStateRooms } = parts

  /** The room to join, new or one that we were in before. Undefined if we were in one of another version. */
  async function roomToJoin(roomId: RoomId, version: RoomVersion): Promise<Room | undefined> {
    const known = await registry.get(roomId)
    if (!known) return emptyRoom({ nid: await nextRoomNid(parts.db), id: roomId, version, events: parts.events })
    if (known.version === version) return known
    if (known.pending.extremities.length > 0) return undefined
    // We had the version from an invitation, which proves nothing; the room's own create event does.
    await parts.db.tx((tx) => setRoomVersion(tx, known.nid, version.id))
    registry.drop(known)
    return registry.get(roomId)
  }

  async function join(
    resident: ServerName,
    room: Room,
    read: ReadPdu,
    claimed: ClaimedState,
    answer: RoomStateAnswer,
  ): Promise<Result> {
    const { eventId, pdu } = read
    const wasStrange = room.pending.extremities.length === 0
    const { map: state, memberships } = await takeClaimed(parts, room, claimed, eventId)
    if (!room.alive) return 'moved'
    const prevIds = prevIdsOf(pdu)
    const known = await outliers.find(room, [eventId, ...authIdsOf(pdu), ...impliedIds(room), ...prevIds])
    if (known.get(eventId)?.hasPlace) return receivedAs(eventId, 'known')
    if (!state || room.stateNid(state, 'm.room.create', '') === 0)
      return dropped('the state of the room could not be had', eventId)
    if (!authIdsOf(pdu).every((id) => known.has(id))) return dropped('its auth events could not be had', eventId)
    const intake = new Intake(parts, room, resident)
    await intake.lookUp([])
    const prevs = prevIds.flatMap((id) => known.get(id) ?? []).filter((event) => isPlacedIn(room, event))
    // If other users of ours are in the room, we already know its state.
    const isKnownHere = room.localMembers.size > 0 && prevs.length === prevIds.length
    const isPartial = answer.areMembersOmitted === true && !isKnownHere
    // We did not know the room when we sent the request, but do now. Members can be written behind a state only if it is the only one.
    if (isPartial && !wasStrange) throw membersAreMissing()
    const cited = authIdsOf(pdu).map((id) => known.get(id)!)
    const before = isPartial ? withMembers(state, cited) : state
    const partialState = isPartial ? await beginPartialState(room, resident, eventId, answer) : undefined
    const place = async (): Promise<Result> => {
      const placed = await placing.place(room, read, {
        outlier: known.get(eventId),
        prevs,
        passedOver: new Set(),
        missingBehind: [],
        cited: known,
        ...(isKnownHere ? { claimed: undefined } : { claimed: before, claimedMemberships: memberships }),
        lacksMembers: isPartial,
        isReferenced: false,
        redactions: [],
        target: undefined,
        isOwnJoin: true,
        isOffered: false,
      })
      if (placed === 'moved') return 'moved'
      if ('standing' in placed) return receivedAs(eventId, placed.standing, placed.reason)
      const [one] = await settled([placed])
      return one?.outcome === 'committed' ? receivedAs(eventId, placed.event.standing, placed.event.reason) : 'moved'
    }
    const result = await place().catch((error) => {
      // It is not known whether the join was written: the resync finds out.
      if (partialState) parts.resync(partialState)
      throw error
    })
    // Memory may still hold what invitations said of the room before it was known, so the room is loaded again.
    if (wasStrange) registry.drop(room)
    const isIn = result !== 'moved' && result.kind === 'accepted'
    if (partialState && isIn) parts.resync(partialState)
    else if (partialState) await partialStateRooms.abandon(partialState)
    else if (room.partialState && isIn && !isKnownHere) await partialStateRooms.supersede(room.partialState)
    return result
  }

  async function beginPartialState(
    room: Room,
    resident: ServerName,
    joinId: EventId,
    { servers = [] }: RoomStateAnswer,
  ): Promise<PartialState> {
    room.partialState = await partialStateRooms.open(room, { resident, servers, joinId })
    return room.partialState
  }

  return async (resident, version, roomId, joinEvent, answer) => {
    const place = { id: roomId, version }
    const read = await pduChecks.check(place, joinEvent)
    if (isRefusal(read)) return dropped(read.reason)
    const claimed = await orderClaimed(answer, pduChecks.expect, keysJudging(version, read.pdu))
    const judges = await pduChecks.checkAll(place, claimed.judges.filter(claimed.isState).map(claimed.at))
    if (!judges.some((one) => isCreateOf(version, one))) return dropped(OTHER_VERSION, read.eventId)
    const others = await pduChecks.checkAll(
      place,
      claimed.judges.filter((index) => !claimed.isState(index)).map(claimed.at),
    )
    const refusal = refusalOf(version, read.pdu, [...judges, ...others])
    if (refusal !== undefined) return dropped(refusal, read.eventId)
    return roomQueue.run(roomId, async () => {
      for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
        const room = await roomToJoin(roomId, version)
        if (!room) return dropped(OTHER_VERSION, read.eventId)
        if (room.partialState?.lacksMembers) throw membersAreMissing()
        const received = await join(resident, room, read, claimed, answer)
        if (received !== 'moved') return received
      }
      return dropped('the room is too busy just now', read.eventId)
    })
  }
}

/** The state keys that authorise a join. */
function keysJudging(version: RoomVersion, join: Pdu): ReadonlySet<string> {
  const keys: readonly StateKeyPair[] = [...authEventKeys(version, join), ['m.room.create', '']]
  return new Set(keys.map(([type, stateKey]) => `${type}\0${stateKey}`))
}

/**
 * Why the room does not let us in by the state that a server claims. This is checked before any of it is stored. The state may lack
 * members; those that matter here are cited.
 */
function refusalOf(version: RoomVersion, join: Pdu, judges: readonly ReadPdu[]): string | undefined {
  const find: StateLookup = (type, key) => judges.find(({ pdu }) => pdu.type === type && pdu.state_key === key)?.pdu
  const verdict = authorise(version, join, find)
  return verdict.allowed ? undefined : `the room does not let us in: ${reasonOf(verdict)}`
}

/** A state without members, completed with those that authorise the join: they belong to the same state. */
function withMembers(state: StateMap, cited: readonly RoomEvent[]): StateMap {
  let known = state
  for (const { type, keyId, nid } of cited) {
    if (type === 'm.room.member' && keyId !== undefined && getState(known, keyId) === 0)
      known = setState(known, keyId, nid)
  }
  return known
}

function isPlacedIn(room: Room, event: RoomEvent): boolean {
  return event.roomNid === room.nid && event.hasPlace
}

function isCreateOf(version: RoomVersion, { pdu }: ReadPdu): boolean {
  return pdu.type === 'm.room.create' && pdu.state_key === '' && createContentOf(pdu).roomVersionId === version.id
}
