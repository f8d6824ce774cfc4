import { apiOf } from '../../http/mount.ts'
import { personRole } from '../account/role.ts'
import { webEndpoints } from './index.ts'

/** Pages for people. */
export const webApi = apiOf(() => webEndpoints, personRole)
