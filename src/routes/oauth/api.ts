import type { Endpoint } from '../../http/endpoint.ts'
import { apiOf } from '../../http/mount.ts'
import { personRole } from '../account/role.ts'
import { oauthEndpoints } from './index.ts'

const NONE: readonly Endpoint[] = []

/** The endpoints of the authorisation server; none if it is switched off. */
export const oauthApi = apiOf(({ oauth }) => (oauth.isServed ? oauthEndpoints : NONE), personRole)
