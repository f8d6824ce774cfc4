import { apiOf } from '../../http/mount.ts'
import { federationEndpoints } from './index.ts'
import { federationRole } from './role.ts'

/** The server-server API. */
export const federationApi = apiOf(() => federationEndpoints, federationRole)
