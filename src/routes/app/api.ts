import { apiOf } from '../../http/mount.ts'
import { appEndpoints } from './index.ts'
import { appRole } from './role.ts'

/** The application service API, for services in this process. */
export const appApi = apiOf(() => appEndpoints, appRole)
