import { historyVisibilityOf, joinRuleOf, membershipOf } from '../../core/event/content.ts'
import { isUserId, type ServerName, serverOf } from '../../core/ids.ts'
import { wordsOfUser } from '../../core/user-words.ts'
import { internUsers } from '../../store/accounts/users.ts'
import type { Database, Tx } from '../../store/db/db.ts'
import { type DirectoryUser, putDirectoryUsers } from '../../store/user-directory/directory-users.ts'
import { putOpenRooms } from '../../store/user-directory/open-rooms.ts'
import { MAX_WORDS_OF_USER } from '../limits/user-directory.ts'
import type { EventCache } from '../rooms/room/event-cache.ts'
import type { RoomRegistry } from '../rooms/room/registry.ts'
import type { RoomEvent } from '../rooms/room/room-event.ts'
import { enterLocalUsers } from './local-entries.ts'

const OPENS_ROOMS: ReadonlySet<string> = new Set(['m.room.join_rules', 'm.room.history_visibility'])

/** Whether an event may change what the directory holds. */
export function concernsDirectory({ type, isState }: Pick<RoomEvent, 'type' | 'isState'>): boolean {
  return isState && (type === 'm.room.member' || OPENS_ROOMS.has(type))
}

/** Writes what some events tell about users and rooms. */
export function createDirectoryEntries(parts: {
  readonly db: Database
  readonly serverName: ServerName
  readonly events: Pick<EventCache, 'load'>
  readonly registry: Pick<RoomRegistry, 'getByNid'>
}): (nids: readonly number[]) => Promise<(tx: Tx) => Promise<void>> {
  const { serverName, events, registry } = parts

  /** Whether anyone may join the room or read it, by its current state. A room that is gone is closed. */
  async function isOpen(roomNid: number): Promise<boolean> {
    const room = await registry.getByNid(roomNid).catch(() => undefined)
    if (room === undefined) return false
    const [rules, visibility] = await Promise.all(
      ['m.room.join_rules', 'm.room.history_visibility'].map((type) => room.stateEvent(type, '')),
    )
    return joinRuleOf(rules) === 'public' || historyVisibilityOf(visibility) === 'world_readable'
  }

  return async (nids) => {
    const found = [...(await events.load(nids)).values()]
      .filter((event) => concernsDirectory(event) && event.standing !== 'rejected' && event.standing !== 'soft-failed')
      .toSorted((a, b) => a.nid - b.nid)
    const rooms = new Map<number, boolean>()
    for (const { roomNid, type } of found) if (OPENS_ROOMS.has(type)) rooms.set(roomNid, await isOpen(roomNid))
    const members = new Map(
      found.flatMap((event) => {
        const id = event.pdu.state_key
        return event.type === 'm.room.member' && isUserId(id) && membershipOf(event) === 'join' ? [[id, event]] : []
      }),
    )
    return async (tx) => {
      await putOpenRooms(tx, rooms)
      const users = await internUsers(tx, [...members.keys()])
      const remote: DirectoryUser[] = []
      const local: number[] = []
      for (const [id, event] of members) {
        const userNid = users.get(id) as number
        if (serverOf(id) === serverName) local.push(userNid)
        else remote.push(remoteEntry(userNid, event))
      }
      await enterLocalUsers(tx, local)
      await putDirectoryUsers(tx, remote)
    }
  }
}

/** How a user of another server is found: by their newest member event. */
function remoteEntry(userNid: number, { nid, pdu, content }: RoomEvent): DirectoryUser {
  const text = (value: unknown) => (typeof value === 'string' ? value.replaceAll('\0', '').slice(0, 1_000) : undefined)
  const displayName = text(content.displayname)
  const words = isUserId(pdu.state_key) ? wordsOfUser(pdu.state_key, displayName, MAX_WORDS_OF_USER) : []
  return { userNid, displayName, avatarUrl: text(content.avatar_url), eventNid: nid, words }
}
