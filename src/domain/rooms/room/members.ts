import { displayNameOf, type Membership, membershipOf } from '../../../core/event/content.ts'
import { isUserId, type ServerName, serverOf, type UserId } from '../../../core/ids.ts'
import { diffState, type StateMap } from '../../../core/state/trie.ts'
import type { Users } from '../../users.ts'
import type { MembershipChange, Room } from './room.ts'
import type { RoomEvent } from './room-event.ts'

/** The numbers of two successive events that set one membership; 0 for none. */
export interface Change {
  readonly userId: UserId
  readonly before: number
  readonly after: number
}

interface ChangedIn {
  readonly room: Room
  readonly serverName: ServerName
  readonly users: Users
  /** An event that is not stored yet. */
  readonly fresh?: RoomEvent
  /** The memberships that some of the events set, so that these events need not be read. */
  readonly memberships?: ReadonlyMap<number, Membership> | undefined
}

/** Events of this many changes are in memory at a time: joining a large room changes all its members. */
const CHANGES_AT_ONCE = 1_000

/** The membership changes that follow from a change of the room's current state, whatever caused it. */
export function changedMembers(
  of: ChangedIn & { readonly from: StateMap; readonly to: StateMap },
): Promise<Omit<MembershipChange, 'changedAt'>[]> {
  const changes: Change[] = []
  diffState(of.from, of.to, (keyId, before, after) => {
    const { type, stateKey } = of.room.keys.nameOf(keyId)
    if (type === 'm.room.member' && isUserId(stateKey)) changes.push({ userId: stateKey, before, after })
  })
  return membersOf(of, changes)
}

export async function membersOf(
  { room, serverName, users, fresh, memberships }: ChangedIn,
  changes: readonly Change[],
): Promise<Omit<MembershipChange, 'changedAt'>[]> {
  const membershipIn = (nid: number, events: ReadonlyMap<number, RoomEvent>): Membership =>
    memberships?.get(nid) ?? membershipOf(events.get(nid))
  const made: Omit<MembershipChange, 'changedAt'>[] = []
  for (let at = 0; at < changes.length; at += CHANGES_AT_ONCE) {
    const part = changes.slice(at, at + CHANGES_AT_ONCE)
    const isToBeRead = (nid: number, userId: UserId): boolean =>
      nid !== 0 && nid !== fresh?.nid && (!memberships?.has(nid) || serverOf(userId) === serverName)
    const nids = part.flatMap(({ userId, before, after }) => [before, after].filter((nid) => isToBeRead(nid, userId)))
    const [events, userNids] = await Promise.all([room.events(nids), users.intern(part.map(({ userId }) => userId))])
    if (fresh) events.set(fresh.nid, fresh)
    for (const { userId, before, after } of part) {
      made.push({
        userId,
        userNid: userNids.get(userId)!,
        isLocal: serverOf(userId) === serverName,
        displayName: displayNameOf(events.get(after)),
        before: before === 0 ? undefined : membershipIn(before, events),
        after: membershipIn(after, events),
        // If state resolution takes a membership away altogether, its last event is the one that had set it.
        eventNid: after === 0 ? before : after,
      })
    }
  }
  return made
}
