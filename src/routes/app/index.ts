import type { Endpoint } from '../../http/endpoint.ts'
import { getProtocolMetadata } from './get-protocol-metadata.ts'
import { lookUpUser } from './look-up-user.ts'
import { ping } from './ping.ts'
import { queryLocationByAlias } from './query-location-by-alias.ts'
import { queryLocationByProtocol } from './query-location-by-protocol.ts'
import { queryRoomByAlias } from './query-room-by-alias.ts'
import { queryUserById } from './query-user-by-id.ts'
import { queryUserByProtocol } from './query-user-by-protocol.ts'
import { sendTransaction } from './send-transaction.ts'

/** The endpoints of application services in this process, in the order of the specification. */
export const appEndpoints: readonly Endpoint[] = [
  sendTransaction,
  ping,
  queryUserById,
  queryRoomByAlias,
  getProtocolMetadata,
  queryUserByProtocol,
  queryLocationByProtocol,
  queryLocationByAlias,
  lookUpUser,
]
