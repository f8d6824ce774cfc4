import type { Endpoint } from '../../http/endpoint.ts'
import { exchangeOpenIdToken } from './exchange-open-id-token.ts'
import { getServerKey } from './get-server-key.ts'
import { onBindThirdPartyIdentifier } from './on-bind-third-party-identifier.ts'
import { onBindThirdPartyIdentifierPost } from './on-bind-third-party-identifier-post.ts'

/** What other servers ask, in the order of the specification. */
export const federationEndpoints: readonly Endpoint[] = [
  getServerKey,
  exchangeOpenIdToken,
  onBindThirdPartyIdentifier,
  onBindThirdPartyIdentifierPost,
]
