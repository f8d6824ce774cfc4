import type { Services } from '../../domain/services.ts'
import type { Endpoint } from '../../http/endpoint.ts'
import { withoutV1 } from '../../http/generations.ts'
import { rolePlugin } from '../../http/mount.ts'
import { identityEndpoints, identityPages, identityWelcome } from './index.ts'
import { identityRole } from './role.ts'

/** The identity service API, and its pages. */
export const identityPlugin = rolePlugin(endpointsOf, identityRole)

function endpointsOf({ config }: Services): readonly Endpoint[] {
  const endpoints = config.identity.v1_api.enabled ? identityEndpoints : withoutV1(identityEndpoints)
  const welcome = config.roles.includes('client') ? [] : identityWelcome
  return [...endpoints, ...identityPages, ...welcome]
}
