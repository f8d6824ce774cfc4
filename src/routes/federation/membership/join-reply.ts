import type { JsonObject } from '../../../core/json.ts'
import { parseExact } from '../../../core/large-integers.ts'
import type { JoinedRoom } from '../../../domain/federation/handshakes.ts'

/** The answer to a join, in both versions of the operation. */
export function joinReply(
  { state, authChain, areMembersOmitted, event, servers }: JoinedRoom,
  origin: string,
): [Readonly<Record<string, readonly string[]>>, JsonObject] {
  const joined = { origin, event: parseExact(event) as JsonObject }
  const rest = { ...joined, members_omitted: areMembersOmitted, servers_in_room: [...servers] }
  return [{ auth_chain: authChain, state }, rest]
}
