import { ProtocolError } from '../../../core/errors.ts'
import { avatarUrlOf, displayNameOf, type Membership, membershipOf } from '../../../core/event/content.ts'
import type { RoomId } from '../../../core/ids.ts'
import type { JsonObject } from '../../../core/json.ts'
import { JsonBytes } from '../../../core/json-bytes.ts'
import { getState } from '../../../core/state/trie.ts'
import type { Reader } from '../../../store/db/db.ts'
import { getTimelineBackwards } from '../../../store/events/events.ts'
import { getMembers, getMemberships, getRooms } from '../../../store/rooms/rooms.ts'
import type { Requester } from '../../accounts/requester.ts'
import type { Clock } from '../../clock.ts'
import type { RoomAppservices } from '../room/appservices-of-room.ts'
import type { EventCache } from '../room/event-cache.ts'
import { stateAt } from '../room/past-state.ts'
import type { Room } from '../room/room.ts'
import type { Readable } from '../room/room-access.ts'
import type { RoomEvent } from '../room/room-event.ts'
import { wholeRoom } from '../room/whole-room.ts'
import { readingOf } from './event-lists.ts'
import { createEventParts } from './event-parts.ts'
import type { Positions } from './positions.ts'
import { BEGINNING } from './timeline.ts'
import { readWholeState, type WholeStateParts } from './whole-state.ts'

/** Which members to give: those with one membership, or without another, or either; all when neither is set. */
export interface MembersQuery {
  /** A pagination token: gives the members as of then. */
  readonly at: string | undefined
  readonly membership: Membership | undefined
  readonly notMembership: Membership | undefined
}

/** The members of rooms: the current ones; for users who left, those at the time they left; or those at a given moment. */
export interface MembersReader {
  members(by: Requester, roomId: RoomId, query: MembersQuery): Promise<JsonBytes>
  /** Names and avatars of the current members. For members, and for services with a user in the room. */
  joinedMembers(by: Requester, roomId: RoomId): Promise<JsonBytes>
  joinedRooms(by: Requester): Promise<RoomId[]>
}

export interface MembersReaderParts extends WholeStateParts {
  readonly db: Reader
  readonly events: EventCache
  readonly positions: Positions
  readonly appservices: Pick<RoomAppservices, 'isUserOf'>
  readonly clock: Clock
}

const MEMBERSHIPS: readonly Membership[] = ['join', 'invite', 'leave', 'ban', 'knock']

export function createMembersReader(parts: MembersReaderParts): MembersReader {
  const { db, events, access, clock, appservices } = parts
  const eventParts = createEventParts(parts)

  /** The event after which the members are requested; undefined for now, 'nothing' for before the room's first event. */
  async function momentOf(
    by: Requester,
    readable: Readable,
    at: string | undefined,
  ): Promise<RoomEvent | undefined | 'nothing'> {
    const { room, departure } = readable
    const pos = at === undefined ? undefined : await parts.positions.positionOf(at, room)
    if (pos === undefined || pos >= (departure?.pos ?? room.committed.pos)) return departure
    const [row] = await getTimelineBackwards(db, room.nid, BEGINNING, pos, 1)
    if (row === undefined) return 'nothing'
    const [event] = await access.visibleTo(by, room, [events.adopt(row)])
    if (!event) throw new ProtocolError('M_FORBIDDEN', 'You cannot see this room as it was then.')
    return event
  }

  /** The numbers of member events: now only those of these memberships, and of an earlier moment all. */
  async function memberNids(
    room: Room,
    moment: RoomEvent | undefined,
    memberships: readonly Membership[],
  ): Promise<number[]> {
    if (!moment) return (await getMembers(db, room.nid, memberships)).map(({ event_nid }) => event_nid)
    const state = await stateAt(db, room, moment.pointAfter)
    const nids = [...room.keys.ofType('m.room.member')].map(([, keyId]) => getState(state, keyId))
    return nids.filter((nid) => nid !== 0)
  }

  return {
    async members(by, roomId, { at, membership, notMembership }) {
      const readable = await readWholeState(parts, by, roomId)
      const isWanted = (one: Membership): boolean =>
        (membership === undefined && notMembership === undefined) ||
        one === membership ||
        (notMembership !== undefined && one !== notMembership)
      const moment = await momentOf(by, readable, at)
      const wanted = MEMBERSHIPS.filter(isWanted)
      const nids = moment === 'nothing' ? [] : await memberNids(readable.room, moment, wanted)
      const wants = (event: RoomEvent): boolean => wanted.includes(membershipOf(event))
      const out = new JsonBytes().text('{').key('chunk', true)
      await eventParts.write(out, nids, readingOf(by, roomId, clock), moment === undefined ? undefined : wants)
      return out.text('}')
    },

    async joinedMembers(by, roomId) {
      const { appservice: service } = by
      const known = service
        ? await access.anyMustBeInRoom(by, (userId) => appservices.isUserOf(service, userId), roomId)
        : await access.mustBeInRoom(by, roomId)
      const room = await wholeRoom(parts.registry, known)
      const rows = await getMembers(db, room.nid, ['join'])
      const loaded = await events.load(rows.map(({ event_nid }) => event_nid))
      return new JsonBytes().value({
        joined: Object.fromEntries(rows.map((row) => [row.user_id, profileIn(loaded.get(row.event_nid))])),
      })
    },

    joinedRooms: (by) => readJoinedRooms(db, by),
  }
}

export async function readJoinedRooms(db: Reader, { userNid }: Pick<Requester, 'userNid'>): Promise<RoomId[]> {
  const memberships = await getMemberships(db, userNid)
  const joined = memberships.filter(({ membership }) => membership === 'join').map(({ room_nid }) => room_nid)
  return (await getRooms(db, joined)).map((room) => room.room_id)
}

/** Both keys are always present, because some clients need them. */
function profileIn(member: RoomEvent | undefined): JsonObject {
  return { display_name: displayNameOf(member) ?? null, avatar_url: avatarUrlOf(member) ?? null }
}
