import { rolePlugin } from '../../http/mount.ts'
import { clientRole } from '../client/role.ts'
import { ssoEndpoints } from './index.ts'

/** Pages of single sign-on. */
export const ssoPlugin = rolePlugin(() => ssoEndpoints, clientRole)
