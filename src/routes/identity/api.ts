import type { Services } from '../../domain/services.ts'
import type { Endpoint } from '../../http/endpoint.ts'
import { withoutV1 } from '../../http/generations.ts'
import { apiOf } from '../../http/mount.ts'
import { identityEndpoints, identityPages, identityWelcome } from './index.ts'
import { identityRole } from './role.ts'

const WITHOUT_V1 = withoutV1(identityEndpoints)
const BESIDE_HOMESERVER = [...identityEndpoints, ...identityPages]
const BESIDE_HOMESERVER_WITHOUT_V1 = [...WITHOUT_V1, ...identityPages]
const ALONE = [...BESIDE_HOMESERVER, ...identityWelcome]
const ALONE_WITHOUT_V1 = [...BESIDE_HOMESERVER_WITHOUT_V1, ...identityWelcome]

/** The identity service API, and its pages. */
export const identityApi = apiOf(endpointsOf, identityRole)

function endpointsOf({ config }: Services): readonly Endpoint[] {
  const hasV1 = config.identity.v1_api.enabled
  if (config.roles.includes('client')) return hasV1 ? BESIDE_HOMESERVER : BESIDE_HOMESERVER_WITHOUT_V1
  return hasV1 ? ALONE : ALONE_WITHOUT_V1
}
