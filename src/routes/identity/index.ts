import type { Endpoint } from '../../http/endpoint.ts'
import { getIdentityVersions } from './get-identity-versions.ts'
import { ping } from './ping.ts'

/** The identity service API, in the order of the specification. */
export const identityEndpoints: readonly Endpoint[] = [getIdentityVersions, ping]
