import { apiOf } from '../../http/mount.ts'
import { clientRole } from '../client/role.ts'
import { mediaEndpoints } from './index.ts'

/** The content repository, a part of the client-server API. */
export const mediaApi = apiOf(() => mediaEndpoints, clientRole)
