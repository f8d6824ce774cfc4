import type { Logger } from 'pino'
import { ProtocolError } from '../../../core/errors.ts'
import type { ReadPdu } from '../../../core/event/read.ts'
import { type EventId, type RoomId, type ServerName, serverOf, type UserId } from '../../../core/ids.ts'
import { isObject, type JsonObject, type ReadJson, readExactJson } from '../../../core/json.ts'
import type { KeyedQueue } from '../../../core/keyed-queue.ts'
import { type StateMap, setState } from '../../../core/state/trie.ts'
import type { Peers } from '../../../outbound/peers.ts'
import type { Database } from '../../../store/db/db.ts'
import { getHeldState } from '../../../store/rooms/partial-state-rooms.ts'
import { MAX_ASKING_MS, MAX_FETCHED_AUTH_EVENTS, MAX_KICKS_JUDGED, MAX_KICKS_JUDGED_OF_A_SERVER } from '../../limits.ts'
import type { Outliers } from '../receive/outliers.ts'
import { isRefusal, type PduChecks } from '../receive/pdu-checks.ts'
import type { Placing } from '../receive/placing.ts'
import { settled } from '../receive/received.ts'
import { authIdsOf, judgingIds, prevIdsOf } from '../room/event-references.ts'
import type { PartialState } from '../room/partial-state.ts'
import type { RoomRegistry } from '../room/registry.ts'
import type { Room } from '../room/room.ts'
import type { RoomEvent } from '../room/room-event.ts'
import type { Surroundings } from '../room/surroundings.ts'

/**
 * Kicks and bans of our users in a room with partial state. They are held like all other events. But if our last user was kicked, the
 * servers of the room no longer give us its members, so these events are authorised by their auth events alone.
 */
export interface PartialStateKicks {
  /**
   * Authorises the held kicks and bans, and applies those that are valid. Call it when every server that answers says that none of our
   * users is in the room. Only that shows, and not the kick alone, that its sender was still in the room. Events that do not hold stay
   * held.
   */
  judge(partialState: PartialState): Promise<void>
}

export interface PartialStateKickParts {
  readonly db: Database
  readonly peers: Pick<Peers, 'eventAuth'>
  readonly registry: Pick<RoomRegistry, 'getByNid' | 'drop'>
  readonly pduChecks: Pick<PduChecks, 'check' | 'checkAll'>
  readonly outliers: Outliers
  readonly placing: Placing
  readonly roomQueue: KeyedQueue<RoomId>
  readonly log: Pick<Logger, 'info'>
}

const MEMBER = 'm.room.member'
const AT_MOST = { ofAServer: MAX_KICKS_JUDGED_OF_A_SERVER, all: MAX_KICKS_JUDGED }
/** How often an event is placed again because others wrote to its room. */
const MAX_ATTEMPTS = 8

/** Whether an event, whose shape is not checked yet, claims to kick or ban a user. */
export function isKickOrBan({ type, sender, state_key: target, content }: JsonObject): boolean {
  const membership = isObject(content) ? content.membership : undefined
  return type === MEMBER && sender !== target && (membership === 'leave' || membership === 'ban')
}

export function createPartialStateKicks(parts: PartialStateKickParts): PartialStateKicks {
  const { db, registry, pduChecks, outliers, roomQueue, log } = parts

  /**
   * Loads the events that authorise an event. Its sender may have joined, or got power, by an event that is held, so held events come
   * first. Then asks for the whole auth chain, the sender's server first.
   */
  async function fetchCited(
    { roomId, roomNid, resident }: PartialState,
    read: ReadPdu,
    origin: ServerName,
  ): Promise<void> {
    async function take(given: readonly ReadJson[]): Promise<void> {
      const reads = await pduChecks.checkAll(await registry.getByNid(roomNid), given.slice(0, MAX_FETCHED_AUTH_EVENTS))
      await roomQueue.run(roomId, async () => outliers.take(await registry.getByNid(roomNid), reads))
    }
    if (await hasCited(await registry.getByNid(roomNid), read)) return
    const ofSender = await getHeldState(db, roomNid, [MEMBER, read.pdu.sender], AT_MOST)
    const levels = await getHeldState(db, roomNid, ['m.room.power_levels', ''], AT_MOST)
    await take([...ofSender, ...levels].map(({ json }) => readExactJson(json)))
    for (const server of new Set([origin, resident])) {
      if (await hasCited(await registry.getByNid(roomNid), read)) return
      try {
        await take(await parts.peers.eventAuth(server, roomId, read.eventId))
      } catch (error) {
        if (!(error instanceof ProtocolError) || error.status === 503) throw error
        log.info({ roomId, server, reason: error.message }, 'a server does not say what authorises a kick')
      }
    }
  }

  async function hasCited(room: Room, read: ReadPdu): Promise<boolean> {
    const ids = judgingIds(room, read)
    const known = await outliers.find(room, ids)
    return ids.every((id) => known.has(id))
  }

  async function place(partialState: PartialState, read: ReadPdu, origin: ServerName): Promise<boolean> {
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const room = await registry.getByNid(partialState.roomNid)
      if (!partialState.lacksMembers || !(await citesPresent(room, partialState, read))) return false
      try {
        const outcome = await placeIn(room, read, origin)
        if (outcome !== 'moved') return outcome
      } catch (error) {
        // The room in memory is half changed: whoever comes next loads it again.
        registry.drop(room)
        throw error
      }
    }
    return false
  }

  async function placeIn(room: Room, read: ReadPdu, origin: ServerName): Promise<boolean | 'moved'> {
    const prevIds = prevIdsOf(read.pdu)
    const known = await outliers.find(room, [read.eventId, ...prevIds])
    const budget = { left: MAX_FETCHED_AUTH_EVENTS, until: performance.now() + MAX_ASKING_MS }
    const cited = await outliers.cite(room, origin, [read], budget)
    const outlier = known.get(read.eventId)
    const isStrange = outlier !== undefined && (outlier.hasPlace || outlier.roomNid !== room.nid)
    if (isStrange || !judgingIds(room, read).every((id) => cited.has(id))) return false
    const prevs = prevIds.flatMap((id) => known.get(id) ?? [])
    const placed = await parts.placing.place(room, read, {
      ...ALONE,
      ...{ outlier, cited, prevs: prevs.filter((event) => event.roomNid === room.nid && event.hasPlace) },
      claimed: withCited(room, read, cited),
    })
    if (placed === 'moved') return 'moved'
    if ('standing' in placed) {
      log.info(
        { roomId: room.id, eventId: read.eventId, reason: placed.reason },
        'a kick of a user of ours is unfounded',
      )
      return false
    }
    const [one] = await settled([placed])
    return one?.outcome === 'committed' ? true : 'moved'
  }

  async function judgeOne(
    partialState: PartialState,
    userId: UserId,
    origin: ServerName,
    raw: ReadJson,
  ): Promise<boolean> {
    const room = await registry.getByNid(partialState.roomNid)
    const read = await pduChecks.check(room, raw)
    if (isRefusal(read) || read.pdu.state_key !== userId || !isKickOrBan(read.pdu)) return false
    // A server that sends an event in another server's name cannot kick anybody with it.
    if (serverOf(read.pdu.sender) !== origin || !(await citesPresent(room, partialState, read))) return false
    await fetchCited(partialState, read, origin)
    return roomQueue.run(partialState.roomId, () => place(partialState, read, origin))
  }

  async function judgeOf(partialState: PartialState, userId: UserId): Promise<void> {
    const rows = await getHeldState(db, partialState.roomNid, [MEMBER, userId], AT_MOST)
    for (const { origin, json } of rows) {
      if (!(await judgeOne(partialState, userId, origin, readExactJson(json)))) continue
      log.info(
        { roomId: partialState.roomId, userId },
        'a local user was kicked or banned before the members of the room were fetched',
      )
      return
    }
  }

  return {
    async judge(partialState) {
      const { localMembers } = await registry.getByNid(partialState.roomNid)
      for (const { userId } of [...localMembers.values()])
        if (partialState.lacksMembers) await judgeOf(partialState, userId)
    },
  }
}

/** Of such an event, only its auth events are known. */
const ALONE: Omit<Surroundings, 'outlier' | 'cited' | 'prevs' | 'claimed'> = {
  passedOver: new Set(),
  missingBehind: [],
  isReferenced: false,
  redactions: [],
  target: undefined,
  isOwnJoin: false,
  isOffered: true,
}

/** Whether an event cites the current membership of its target. A kick from before they joined does not apply. */
async function citesPresent(room: Room, { joinId }: PartialState, { pdu }: ReadPdu): Promise<boolean> {
  const nid = room.stateNid(room.pending.state, pdu.type, pdu.state_key!)
  const cited = new Set<EventId>(authIdsOf(pdu))
  const present = (await room.events([nid])).get(nid)?.id
  return cited.has(joinId) || (present !== undefined && cited.has(present))
}

/** The known state with an event's auth events. The rules need the membership of its sender, which only the auth events hold. */
function withCited(room: Room, { pdu }: ReadPdu, cited: ReadonlyMap<EventId, RoomEvent>): StateMap {
  let state = room.pending.state
  for (const id of authIdsOf(pdu)) {
    const { keyId, nid, roomNid, standing } = cited.get(id)!
    if (keyId !== undefined && roomNid === room.nid && standing !== 'rejected') state = setState(state, keyId, nid)
  }
  return state
}
