import { rolePlugin } from '../../http/mount.ts'
import { federationEndpoints } from './index.ts'
import { federationRole } from './role.ts'

/** The server-server API. */
export const federationPlugin = rolePlugin(() => federationEndpoints, federationRole)
