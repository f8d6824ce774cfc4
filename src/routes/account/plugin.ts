import { rolePlugin } from '../../http/mount.ts'
import { clientRole } from '../client/role.ts'
import { accountEndpoints } from './index.ts'

/** Pages on which people sign in and look after their account. */
export const accountPlugin = rolePlugin(() => accountEndpoints, clientRole)
