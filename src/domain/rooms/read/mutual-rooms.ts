import { ProtocolError } from '../../../core/errors.ts'
import { isRoomId, isUserId } from '../../../core/ids.ts'
import type { JsonObject } from '../../../core/json.ts'
import type { Database } from '../../../store/db/db.ts'
import { pageOfMutualRooms } from '../../../store/rooms/mutual-rooms.ts'
import type { Requester } from '../../accounts/requester.ts'
import { MUTUAL_ROOMS_PER_PAGE } from '../../limits/mutual-rooms.ts'

/** The characters of localparts, those of old servers too (appendices, "Historical User IDs"). */
const LOCALPART = /^@[\x21-\x39\x3b-\x7e]+:/

/** The rooms that users share (client-server API, "Mutual rooms"). */
export interface MutualRooms {
  /**
   * One page of the rooms that both users are joined to; none if nobody knows the other user. `next_batch` is absent on the last page.
   *
   * @param from `next_batch` of the page before: the last room on it
   * @throws ProtocolError `M_INVALID_PARAM` for the requester themselves, for what is no user id, and for what is no token
   */
  list(by: Requester, other: string, from: string | undefined): Promise<JsonObject>
}

export function createMutualRooms({ db }: { readonly db: Database }): MutualRooms {
  return {
    async list(by, other, from) {
      if (!isUserId(other) || !LOCALPART.test(other)) {
        throw new ProtocolError('M_INVALID_PARAM', "'user_id' is no user id.")
      }
      if (other === by.userId) throw new ProtocolError('M_INVALID_PARAM', "'user_id' is your own.")
      if (from !== undefined && !isRoomId(from)) throw new ProtocolError('M_INVALID_PARAM', "'from' is no token.")
      const page = { after: from ?? '', limit: MUTUAL_ROOMS_PER_PAGE + 1 }
      const { room_ids, count } = await pageOfMutualRooms(db, by.userNid, other, page)
      const joined = room_ids.slice(0, MUTUAL_ROOMS_PER_PAGE)
      const isLast = joined.length === room_ids.length
      return { joined, count, ...(!isLast && { next_batch: joined.at(-1)! }) }
    },
  }
}
