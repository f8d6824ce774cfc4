import type { Pdu } from '../../src/core/event/format.ts'
import type { JsonObject } from '../../src/core/json.ts'
import { roomVersion } from '../../src/core/room-version.ts'
import { signEvent } from '../../src/core/signing/event-hash.ts'
import type { SigningKey } from '../../src/core/signing/key.ts'
import { NO_PEERS, type Peers } from '../../src/outbound/peers.ts'

/** Servers that sign every invitation of their users and answer nothing else. */
export function obligingPeers(keyOf: (server: string) => SigningKey | undefined): Peers {
  const invite: Peers['invite'] = async (of, { event, roomVersion: id }) => {
    const key = keyOf(of)
    return key ? (signEvent(roomVersion(id)!, event as Pdu, of, key) as JsonObject) : event
  }
  return Object.assign(Object.create(NO_PEERS) as Peers, { invite })
}
