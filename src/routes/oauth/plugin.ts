import { rolePlugin } from '../../http/mount.ts'
import { personRole } from '../account/role.ts'
import { oauthEndpoints } from './index.ts'

/** The endpoints of the authorisation server; none if it is switched off. */
export const oauthPlugin = rolePlugin(({ oauth }) => (oauth.isServed ? oauthEndpoints : []), personRole)
