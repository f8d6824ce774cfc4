import { apiOf } from '../../http/mount.ts'
import { livekitEndpoints } from './index.ts'
import { livekitRole } from './role.ts'

/** The authorisation service of LiveKit (MSC4195 and what clients use of its predecessor). */
export const livekitApi = apiOf(() => livekitEndpoints, livekitRole)
