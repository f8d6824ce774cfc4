import type { Endpoint } from '../../http/endpoint.ts'
import { getWellknown } from './get-wellknown.ts'
import { getWellknownPolicy } from './get-wellknown-policy.ts'
import { getWellknownServer } from './get-wellknown-server.ts'
import { getWellknownSupport } from './get-wellknown-support.ts'

/** Discovery by the server's name. */
export const wellKnownEndpoints: readonly Endpoint[] = [
  getWellknown,
  getWellknownSupport,
  getWellknownServer,
  getWellknownPolicy,
]
