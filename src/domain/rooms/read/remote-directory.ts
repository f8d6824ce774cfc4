import { isRoomId, type ServerName } from '../../../core/ids.ts'
import { isObject, type JsonObject } from '../../../core/json.ts'
import type { Peers } from '../../../outbound/peers.ts'
import type { DirectoryQuery } from './directory-query.ts'

const MAX_LIMIT = 500

/**
 * The directory of another server (server-server API, "Published Room Directory"): the well-formed parts of its answer.
 *
 * @throws ProtocolError what that server answers; 502 `M_UNKNOWN` when it cannot be asked
 */
export async function listElsewhere(
  peers: Pick<Peers, 'query' | 'post'>,
  server: ServerName,
  { limit, since, term, types, network }: DirectoryQuery,
): Promise<JsonObject> {
  const size = { ...(limit !== undefined && limit > 0 && { limit: Math.min(limit, MAX_LIMIT) }) }
  const place = {
    ...size,
    ...(since !== undefined && { since }),
    ...(network !== undefined && { third_party_instance_id: network }),
  }
  const filter = {
    ...(term !== undefined && { generic_search_term: term }),
    ...(types !== undefined && { room_types: [...types] }),
  }
  const query = new URLSearchParams(Object.entries(place).map(([key, value]): [string, string] => [key, `${value}`]))
  const isPlain = Object.keys(filter).length === 0
  const answer = isPlain
    ? await peers.query(server, `publicRooms${query.size > 0 ? `?${query}` : ''}`)
    : await peers.post(server, 'publicRooms', { ...place, filter })
  const { chunk, total_room_count_estimate: total, next_batch, prev_batch } = answer
  const rooms = (Array.isArray(chunk) ? chunk : []).filter((room) => isObject(room) && isRoomId(room.room_id))
  return {
    chunk: rooms.slice(0, MAX_LIMIT),
    ...(Number.isSafeInteger(total) && { total_room_count_estimate: total! }),
    ...(typeof next_batch === 'string' && { next_batch }),
    ...(typeof prev_batch === 'string' && { prev_batch }),
  }
}
