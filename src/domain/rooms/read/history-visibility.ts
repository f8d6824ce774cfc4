import type { ByteBudget } from '../../../core/byte-budget.ts'
import {
  type HistoryVisibility,
  historyVisibilityOf,
  type Membership,
  membershipOf,
} from '../../../core/event/content.ts'
import { canSeeEvent } from '../../../core/visibility.ts'
import type { Reader } from '../../../store/db/db.ts'
import type { EventCache } from '../room/event-cache.ts'
import { type KeyValues, keyHistories, placeOf } from '../room/key-history.ts'
import type { Room } from '../room/room.ts'
import type { RoomEvent } from '../room/room-event.ts'
import type { Viewer } from '../room/viewer.ts'

/** Everything that decides what one user sees of a room. */
export interface ViewerHistory {
  /** Whether the user may see an event of the room. */
  sees(event: RoomEvent): boolean
  /** The user's membership at an event. It includes what the event itself changes. */
  membershipAt(event: RoomEvent): Membership
  /** Whether the user was joined at an event, or joined between it and a stream position. */
  wasJoinedBy(event: RoomEvent, position: number): boolean
  /** The newest event that ended the user's join; undefined while they are joined, or if they never were. */
  readonly departure: RoomEvent | undefined
  /** The highest position, at most `pos`, that may hold something the user can see; undefined when there is none. */
  mayShowUpTo(pos: number): number | undefined
  /** Whether the room was world readable at any time after an event. */
  wasWorldReadableAfter(event: RoomEvent): boolean
}

export interface ViewerHistories {
  of(room: Room, viewer: Viewer): Promise<ViewerHistory>
}

/** What is kept of an event that set one of the two keys, in place of the event. */
interface Fact extends Pick<RoomEvent, 'nid' | 'pos' | 'streamPos'> {
  readonly visibility: HistoryVisibility
  readonly membership: Membership
}

interface Remembered {
  /** The copy of the room that it was read with. Another copy counts its branches from zero. */
  readonly copy: object
  readonly stamp: string
  readonly history: ViewerHistory
  readonly bytes: number
}

/** Bytes of an empty history, and of a fact. */
const HISTORY_BYTES = 1_500
const FACT_BYTES = 72

/** Reads the room's history visibility and the user's membership from the whole state log. The result is cached until either changes. */
export function createViewerHistories(parts: {
  readonly db: Reader
  readonly events: EventCache
  readonly budget: ByteBudget
}): ViewerHistories {
  const known = parts.budget.part<string, Remembered>({ bytesOf: ({ bytes }) => bytes })

  async function load(room: Room, keys: DecidingKeys): Promise<Pick<Remembered, 'history' | 'bytes'>> {
    const valuesOf = await keyHistories(parts, room, [keys.visibility, keys.member])
    const memberships = valuesOf(keys.member)
    const facts = { visibility: valuesOf(keys.visibility).map(factOf), member: memberships.map(factOf) }
    const departure = departureIn(memberships.events)
    const isIn = membershipOf(memberships.events.find(({ nid }) => nid === keys.memberNow)) === 'join'
    const count = facts.visibility.events.length + facts.member.events.length
    return {
      history: historyFrom(keys, { ...facts, departure, isIn, isBranched: room.committed.lastChain !== 0 }),
      bytes: HISTORY_BYTES + count * FACT_BYTES + facts.visibility.bytes + facts.member.bytes + (departure?.bytes ?? 0),
    }
  }

  return {
    async of(room, { userId, userNid }) {
      const { state } = room.committed
      const visibility = room.stateNid(state, 'm.room.history_visibility', '')
      // Taken before the read: a commit during the read makes the next call read again.
      const memberNow = room.stateNid(state, 'm.room.member', userId)
      const stamp = `${room.branchChanges} ${visibility} ${memberNow}`
      const key = `${room.nid} ${userNid}`
      const remembered = known.get(key)
      if (remembered?.copy === room.copy && remembered.stamp === stamp) return remembered.history
      const read = await load(room, {
        visibility: room.keys.idOf('m.room.history_visibility', ''),
        member: room.keys.idOf('m.room.member', userId),
        memberNow,
      })
      known.set(key, { copy: room.copy, stamp, ...read })
      return read.history
    },
  }
}

interface DecidingKeys {
  readonly visibility: number | undefined
  readonly member: number | undefined
  /** The user's member event in the room's current state; 0 for none. */
  readonly memberNow: number
}

/** What the state log says of one user. */
interface Findings {
  readonly visibility: KeyValues<Fact>
  readonly member: KeyValues<Fact>
  readonly departure: RoomEvent | undefined
  /** Whether the user is in the room now. */
  readonly isIn: boolean
  readonly isBranched: boolean
}

function factOf(event: RoomEvent): Fact {
  const { nid, pos, streamPos } = event
  return { nid, pos, streamPos, visibility: historyVisibilityOf(event), membership: membershipOf(event) }
}

function historyFrom(keys: DecidingKeys, { visibility, member, departure, isIn, isBranched }: Findings): ViewerHistory {
  const joins = member.events.filter(({ membership }) => membership === 'join')
  const lastJoined = joins.at(-1)?.pos ?? Number.NEGATIVE_INFINITY

  const stateBefore = ({ pointBefore }: RoomEvent): { visibility: HistoryVisibility; membership: Membership } => ({
    visibility: visibility.at(pointBefore)?.visibility ?? historyVisibilityOf(undefined),
    membership: member.at(pointBefore)?.membership ?? membershipOf(undefined),
  })

  const open = [
    ...spansWhere(visibility, (value) =>
      ['shared', 'world_readable'].includes(value?.visibility ?? historyVisibilityOf(undefined)),
    ),
    ...spansWhere(member, (value) => value?.membership === 'join' || value?.membership === 'invite'),
  ]

  return {
    // With branches, the position of an event does not say which value applied at it.
    mayShowUpTo: (pos) => (isBranched ? pos : lastWithin(open, pos)),
    departure,
    sees(event) {
      const before = stateBefore(event)
      // An event that others made before they heard of the join may come after it.
      return canSeeEvent(before, isIn || lastJoined > event.pos, after(keys, event, before))
    },
    membershipAt: (event) => after(keys, event, stateBefore(event)).membership,
    wasJoinedBy(event, position) {
      const before = stateBefore(event)
      if (before.membership === 'join' || after(keys, event, before).membership === 'join') return true
      return joins.some((join) => isBetween(join, event, position))
    },
    wasWorldReadableAfter(event) {
      const inForce = visibility.events.findLast((value) => placeOf(value) <= event.pos)
      const later = visibility.events.filter(({ pos }) => pos > event.pos)
      return [inForce, ...later].some((value) => value?.visibility === 'world_readable')
    },
  }
}

/** Whether a member joined between an event and a stream position. */
export function cameBetween(member: KeyValues, event: RoomEvent, position: number): boolean {
  return member.events.some((change) => isBetween(change, event, position) && membershipOf(change) === 'join')
}

function isBetween(change: Pick<RoomEvent, 'pos' | 'streamPos'>, event: RoomEvent, position: number): boolean {
  return change.pos > event.pos && change.streamPos <= position
}

interface PositionSpan {
  readonly from: number
  readonly to: number
}

/** The ranges of positions in which a key had such a value, including the events at both ends. */
function spansWhere({ events }: KeyValues<Fact>, isSuch: (value: Fact | undefined) => boolean): PositionSpan[] {
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

/** Only an event that sets one of the two keys sees a different value after it than before. */
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

/** The membership event after the last join. A profile change is a join too, so it is never the result. */
function departureIn(memberships: readonly RoomEvent[]): RoomEvent | undefined {
  const lastJoin = memberships.findLastIndex((event) => membershipOf(event) === 'join')
  return lastJoin === -1 ? undefined : memberships[lastJoin + 1]
}
