import { apiOf } from '../../http/mount.ts'
import { personRole } from '../account/role.ts'
import { ssoEndpoints } from './index.ts'

/** Pages of single sign-on. */
export const ssoApi = apiOf(() => ssoEndpoints, personRole)
