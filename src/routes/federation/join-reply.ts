import type { JsonObject } from '../../core/json.ts'
import type { JoinedRoom } from '../../domain/federation/handshakes.ts'

/** What a server that has joined is told of the room, in both versions of the operation. */
export function joinReply(
  { state, authChain, event, servers }: JoinedRoom,
  origin: string,
): [Readonly<Record<string, readonly string[]>>, JsonObject] {
  const rest = { origin, event: JSON.parse(event) as JsonObject, members_omitted: false, servers_in_room: [...servers] }
  return [{ auth_chain: authChain, state }, rest]
}
