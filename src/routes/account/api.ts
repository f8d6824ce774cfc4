import { apiOf } from '../../http/mount.ts'
import { accountEndpoints } from './index.ts'
import { personRole } from './role.ts'

/** Pages on which people sign in and look after their account. */
export const accountApi = apiOf(() => accountEndpoints, personRole)
