import type { JsonObject } from '../../core/json.ts'
import type { Peers } from '../../outbound/peers.ts'
import type { RemoteKeys } from '../keys/remote-keys.ts'

/** Sends clients' questions about remote users and devices to those users' servers. */
export function createRemoteKeys({ peers }: { readonly peers: Pick<Peers, 'post'> }): RemoteKeys {
  return {
    query: (server, deviceKeys, timeoutMs) =>
      peers.post(server, 'user/keys/query', { device_keys: deviceKeys as JsonObject }, timeoutMs),
    claim: (server, oneTimeKeys, timeoutMs) =>
      peers.post(server, 'user/keys/claim', { one_time_keys: oneTimeKeys as JsonObject }, timeoutMs),
  }
}
