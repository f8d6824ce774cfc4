import type { Endpoint } from '../../http/endpoint.ts'
import { exchangeOpenIdToken } from './exchange-open-id-token.ts'

/** What other servers ask, in the order of the specification. */
export const federationEndpoints: readonly Endpoint[] = [exchangeOpenIdToken]
