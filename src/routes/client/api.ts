import { apiOf } from '../../http/mount.ts'
import { clientEndpoints } from './index.ts'
import { clientRole } from './role.ts'

/** The client-server API. */
export const clientApi = apiOf(() => clientEndpoints, clientRole)
