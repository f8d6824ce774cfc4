import { rolePlugin } from '../../http/mount.ts'
import { identityAdminEndpoints } from './identity.ts'
import { adminEndpoints } from './index.ts'
import { adminRole } from './role.ts'

/** The admin API. */
export const adminPlugin = rolePlugin(() => adminEndpoints, adminRole)

/** What of it a server has that is an identity service and nothing else. */
export const identityAdminPlugin = rolePlugin(() => identityAdminEndpoints, adminRole)
