import type { Requester } from '../domain/accounts/requester.ts'
import type { Operator } from '../domain/admin/operator.ts'
import type { AppserviceRequester, HostedRequester } from '../domain/appservices/requester.ts'
import type { PeerRequester } from '../domain/federation/requester.ts'
import type { IdentityRequester } from '../domain/identity/requester.ts'

/** Who calls: the holder of an account here, an operator, a user of the identity service, an application service, or another server. */
export type Caller = Requester | Operator | IdentityRequester | AppserviceRequester | HostedRequester | PeerRequester
