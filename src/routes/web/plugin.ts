import { rolePlugin } from '../../http/mount.ts'
import { clientRole } from '../client/role.ts'
import { webEndpoints } from './index.ts'

/** Pages for people. */
export const webPlugin = rolePlugin(() => webEndpoints, clientRole)
