import { rolePlugin } from '../../http/mount.ts'
import { personRole } from '../account/role.ts'
import { ssoEndpoints } from './index.ts'

/** Pages of single sign-on. */
export const ssoPlugin = rolePlugin(() => ssoEndpoints, personRole)
