import { apiOf } from '../../http/mount.ts'
import { clientRole } from '../client/role.ts'
import { wellKnownEndpoints } from './index.ts'

/** Discovery by the server's name. */
export const wellKnownApi = apiOf(() => wellKnownEndpoints, clientRole)
