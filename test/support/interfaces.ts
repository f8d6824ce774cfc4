import { clientEndpoints } from '../../src/routes/client/index.ts'
import { federationEndpoints } from '../../src/routes/federation/index.ts'
import { keyEndpoints } from '../../src/routes/key/index.ts'
import { mediaEndpoints } from '../../src/routes/media/index.ts'
import { ssoEndpoints } from '../../src/routes/sso/index.ts'
import { webEndpoints } from '../../src/routes/web/index.ts'

/** The client-server API. */
export const CLIENT_API = [...clientEndpoints, ...mediaEndpoints]
/** The server-server API. */
export const SERVER_API = [...keyEndpoints, ...federationEndpoints]
/** All pages for people on a homeserver. */
export const PAGES = [...webEndpoints, ...ssoEndpoints]
