import { rolePlugin } from '../../http/mount.ts'
import { personRole } from '../account/role.ts'
import { webEndpoints } from './index.ts'

/** Pages for people. */
export const webPlugin = rolePlugin(() => webEndpoints, personRole)
