import { apiOf } from '../../http/mount.ts'
import { federationRole } from '../federation/role.ts'
import { keyEndpoints } from './index.ts'

/** Publishing signing keys, and the notary. */
export const keyApi = apiOf(() => keyEndpoints, federationRole)
