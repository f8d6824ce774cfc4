import { rolePlugin } from '../../http/mount.ts'
import { federationRole } from '../federation/role.ts'
import { keyEndpoints } from './index.ts'

/** Publishing signing keys, and the notary. */
export const keyPlugin = rolePlugin(() => keyEndpoints, federationRole)
