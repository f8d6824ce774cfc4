import type { Endpoint } from '../../http/endpoint.ts'
import { authorize } from './authorize.ts'
import { authorizeDevice } from './authorize-device.ts'
import { decideConsent } from './decide-consent.ts'
import { issueToken } from './issue-token.ts'
import { registerClient } from './register-client.ts'
import { resumeAuthorization } from './resume-authorization.ts'
import { revokeToken } from './revoke-token.ts'
import { showConsent } from './show-consent.ts'

/** The authorisation server. */
export const oauthEndpoints: readonly Endpoint[] = [
  registerClient,
  authorize,
  resumeAuthorization,
  showConsent,
  decideConsent,
  issueToken,
  authorizeDevice,
  revokeToken,
]
