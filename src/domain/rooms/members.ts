import { displayNameOf, membershipOf } from '../../core/event/content.ts'
import { isUserId, type ServerName, serverOf, type UserId } from '../../core/ids.ts'
import { diffState, type StateMap } from '../../core/state/trie.ts'
import type { Users } from '../users.ts'
import type { MembershipChange, Room } from './room.ts'
import type { RoomEvent } from './room-event.ts'

interface Change {
  readonly userId: UserId
  readonly before: number
  readonly after: number
}

/** What a change of a room's current state, by whatever caused it, makes of its members. */
export async function changedMembers(of: {
  readonly room: Room
  readonly serverName: ServerName
  readonly users: Users
  readonly from: StateMap
  readonly to: StateMap
  /** One that is not stored yet. */
  readonly fresh: RoomEvent
}): Promise<Omit<MembershipChange, 'changedAt'>[]> {
  const { room, from, to, fresh } = of
  const changes: Change[] = []
  diffState(from, to, (keyId, before, after) => {
    const { type, stateKey } = room.keys.nameOf(keyId)
    if (type === 'm.room.member' && isUserId(stateKey)) changes.push({ userId: stateKey, before, after })
  })
  if (changes.length === 0) return []
  const nids = changes.flatMap(({ before, after }) => [before, after]).filter((nid) => nid !== 0 && nid !== fresh.nid)
  const [events, userNids] = await Promise.all([
    room.events(nids),
    of.users.intern(changes.map(({ userId }) => userId)),
  ])
  events.set(fresh.nid, fresh)
  return changes.map(({ userId, before, after }) => ({
    userId,
    userNid: userNids.get(userId)!,
    isLocal: serverOf(userId) === of.serverName,
    displayName: displayNameOf(events.get(after)),
    before: before === 0 ? undefined : membershipOf(events.get(before)),
    after: membershipOf(events.get(after)),
    // Where branches take a membership back altogether, the event that set it is the last there was.
    eventNid: after === 0 ? before : after,
  }))
}
