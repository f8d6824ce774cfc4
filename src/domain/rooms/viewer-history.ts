import { createCache } from '../../core/cache.ts'
import { type HistoryVisibility, historyVisibilityOf, type Membership, membershipOf } from '../../core/event/content.ts'
import type { UserId } from '../../core/ids.ts'
import { canSeeEvent } from '../../core/visibility.ts'
import type { Reader } from '../../store/db.ts'
import type { EventCache } from './event-cache.ts'
import { type KeyValues, keyHistories, placeOf } from './key-history.ts'
import type { Room } from './room.ts'
import type { RoomEvent } from './room-event.ts'

export interface Viewer {
  readonly userId: UserId
  readonly userNid: number
}

/** All that ever decided about what one user sees of a room. */
export interface ViewerHistory {
  /** Whether the user may see an event of the room. */
  sees(event: RoomEvent): boolean
  /** The user's membership at an event, with what the event itself changes. */
  membershipAt(event: RoomEvent): Membership
  /** Whether the user was joined at an event, or came between it and a position of the stream. */
  wasJoinedBy(event: RoomEvent, position: number): boolean
  /** The newest event by which the user stopped being joined; undefined while they are joined or if they never were. */
  readonly departure: RoomEvent | undefined
  /** The highest position up to one at which there may be something for the user to see; undefined when there is none. */
  mayShowUpTo(pos: number): number | undefined
  /** Whether the room was readable by the world at any time after an event. */
  wasWorldReadableAfter(event: RoomEvent): boolean
}

export interface ViewerHistories {
  of(room: Room, viewer: Viewer): Promise<ViewerHistory>
}

const REMEMBERED = 5_000

/** Reads the room's history visibility and the user's membership through all of the state log; kept until either changes. */
export function createViewerHistories({ db, events }: { db: Reader; events: EventCache }): ViewerHistories {
  const known = createCache<string, { room: Room; stamp: string; history: ViewerHistory }>(REMEMBERED)

  async function load(room: Room, keys: DecidingKeys): Promise<ViewerHistory> {
    const valuesOf = await keyHistories({ db, events }, room, [keys.visibility, keys.member])
    return historyFrom(keys, valuesOf(keys.visibility), valuesOf(keys.member), room.committed.lastChain !== 0)
  }

  return {
    async of(room, { userId, userNid }) {
      const { state } = room.committed
      const visibility = room.stateNid(state, 'm.room.history_visibility', '')
      // Taken before reading: what is committed meanwhile makes the next call read again.
      const stamp = `${room.branchChanges} ${visibility} ${room.stateNid(state, 'm.room.member', userId)}`
      const key = `${room.nid} ${userNid}`
      const remembered = known.get(key)
      if (remembered?.room === room && remembered.stamp === stamp) return remembered.history
      const history = await load(room, {
        visibility: room.keys.idOf('m.room.history_visibility', ''),
        member: room.keys.idOf('m.room.member', userId),
      })
      known.set(key, { room, stamp, history })
      return history
    },
  }
}

interface DecidingKeys {
  readonly visibility: number | undefined
  readonly member: number | undefined
}

function historyFrom(keys: DecidingKeys, visibility: KeyValues, member: KeyValues, isBranched: boolean): ViewerHistory {
  const lastJoined = member.events.findLast((event) => membershipOf(event) === 'join')?.pos ?? Number.NEGATIVE_INFINITY

  const stateBefore = ({ pointBefore }: RoomEvent): { visibility: HistoryVisibility; membership: Membership } => ({
    visibility: historyVisibilityOf(visibility.at(pointBefore)),
    membership: membershipOf(member.at(pointBefore)),
  })

  const open = [
    ...spansWhere(visibility, (value) => ['shared', 'world_readable'].includes(historyVisibilityOf(value))),
    ...spansWhere(member, (value) => ['join', 'invite'].includes(membershipOf(value))),
  ]

  return {
    // Where branches meet, what was in force at an event is not told by its position.
    mayShowUpTo: (pos) => (isBranched ? pos : lastWithin(open, pos)),
    departure: departureIn(member.events),
    sees(event) {
      const before = stateBefore(event)
      return canSeeEvent(before, lastJoined > event.pos, after(keys, event, before))
    },
    membershipAt: (event) => after(keys, event, stateBefore(event)).membership,
    wasJoinedBy(event, position) {
      const before = stateBefore(event)
      if (before.membership === 'join' || after(keys, event, before).membership === 'join') return true
      return cameBetween(member, event, position)
    },
    wasWorldReadableAfter(event) {
      const inForce = visibility.events.findLast((value) => placeOf(value) <= event.pos)
      const later = visibility.events.filter(({ pos }) => pos > event.pos)
      return [inForce, ...later].some((value) => historyVisibilityOf(value) === 'world_readable')
    },
  }
}

/** Whether a member joined between an event and a position of the stream. */
export function cameBetween(member: KeyValues, event: RoomEvent, position: number): boolean {
  return member.events.some(
    (change) => change.pos > event.pos && change.streamPos <= position && membershipOf(change) === 'join',
  )
}

interface PositionSpan {
  readonly from: number
  readonly to: number
}

/** From which position to which a key was such, the events that began and ended it among them. */
function spansWhere({ events }: KeyValues, isSuch: (value: RoomEvent | undefined) => boolean): PositionSpan[] {
  const values = [undefined, ...events]
  return values.flatMap((value, index) => {
    const next = values[index + 1]
    const from = value ? placeOf(value) : Number.NEGATIVE_INFINITY
    return isSuch(value) ? [{ from, to: next ? placeOf(next) : Number.POSITIVE_INFINITY }] : []
  })
}

function lastWithin(spans: readonly PositionSpan[], pos: number): number | undefined {
  const ends = spans.flatMap(({ from, to }) =>
    from <= pos && to > Number.NEGATIVE_INFINITY ? [Math.min(pos, to)] : [],
  )
  return ends.length === 0 ? undefined : Math.max(...ends)
}

/** Only an event that sets one of the two keys is seen differently after it than before. */
function after(
  keys: DecidingKeys,
  event: RoomEvent,
  before: { visibility: HistoryVisibility; membership: Membership },
): { visibility: HistoryVisibility; membership: Membership } {
  if (event.keyId === undefined) return before
  if (event.keyId === keys.visibility) return { ...before, visibility: historyVisibilityOf(event) }
  if (event.keyId === keys.member) return { ...before, membership: membershipOf(event) }
  return before
}

/** The membership event that followed the last join: profile changes are joins too, so it is not one of them. */
function departureIn(memberships: readonly RoomEvent[]): RoomEvent | undefined {
  const lastJoin = memberships.findLastIndex((event) => membershipOf(event) === 'join')
  return lastJoin === -1 ? undefined : memberships[lastJoin + 1]
}
