import { rolePlugin } from '../../http/mount.ts'
import { clientRole } from '../client/role.ts'
import { mediaEndpoints } from './index.ts'

/** The content repository, a part of the client-server API. */
export const mediaPlugin = rolePlugin(() => mediaEndpoints, clientRole)
