import type { Endpoint } from '../../http/endpoint.ts'
import { getServerKey } from './get-server-key.ts'
import { queryKeysOfServers } from './query-keys-of-servers.ts'
import { queryServerKeys } from './query-server-keys.ts'

/** Signing keys of servers, in the order of the specification. */
export const keyEndpoints: readonly Endpoint[] = [getServerKey, queryServerKeys, queryKeysOfServers]
