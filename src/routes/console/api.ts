import { apiOf } from '../../http/mount.ts'
import { adminRole } from '../admin/role.ts'
import { clientRole } from '../client/role.ts'
import { consoleDataEndpoints, consolePageEndpoints } from './index.ts'

/** The console for administrators: a page, and the files that it is made of. */
export const consolePageApi = apiOf(() => consolePageEndpoints, clientRole)

/** Its part of the admin API. */
export const consoleDataApi = apiOf(() => consoleDataEndpoints, adminRole)
