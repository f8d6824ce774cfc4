import type { UserId } from '../../../core/ids.ts'
import type { Reader } from '../../../store/db/db.ts'
import { perTick } from '../../../store/db/per-tick.ts'
import { getHeroesOf } from '../../../store/rooms/rooms.ts'

/** The members after whom a room without a name is named. */
export type Heroes = (roomNid: number, userNid: number) => Promise<readonly UserId[]>

const HEROES = 5

/** All rooms of a tick are read together. */
export function createHeroes(db: Reader): Heroes {
  const nameOf = (roomNid: number, userNid: number) => `${roomNid} ${userNid}`

  const read = perTick(async (names: readonly string[]) => {
    const wanted = names.map((name) => {
      const [roomNid, userNid] = name.split(' ').map(Number)
      return { roomNid: roomNid!, userNid: userNid! }
    })
    const found = new Map<string, UserId[]>(names.map((name) => [name, []]))
    for (const { room_nid, user_nid, user_id } of await getHeroesOf(db, wanted, HEROES)) {
      found.get(nameOf(room_nid, user_nid))?.push(user_id)
    }
    return found
  })

  return async (roomNid, userNid) => {
    const name = nameOf(roomNid, userNid)
    return (await read([name])).get(name) ?? []
  }
}
