import type { Endpoint } from '../../http/endpoint.ts'
import { agreeToTerms } from './agree-to-terms.ts'
import { emailRequestToken } from './email-request-token.ts'
import { emailRequestTokenV1 } from './email-request-token-v1.ts'
import { emailSubmitTokenGet } from './email-submit-token-get.ts'
import { emailSubmitTokenPost } from './email-submit-token-post.ts'
import { emailSubmitTokenPostV1 } from './email-submit-token-post-v1.ts'
import { getAccount } from './get-account.ts'
import { getIdentityVersions } from './get-identity-versions.ts'
import { getPubKey } from './get-pub-key.ts'
import { getTerms } from './get-terms.ts'
import { getValidated3pid } from './get-validated3pid.ts'
import { getValidated3pidV1 } from './get-validated3pid-v1.ts'
import { isEphemeralPubKeyValid } from './is-ephemeral-pub-key-valid.ts'
import { isPubKeyValid } from './is-pub-key-valid.ts'
import { logOutAccount } from './log-out-account.ts'
import { msisdnRequestToken } from './msisdn-request-token.ts'
import { msisdnRequestTokenV1 } from './msisdn-request-token-v1.ts'
import { msisdnSubmitTokenGet } from './msisdn-submit-token-get.ts'
import { msisdnSubmitTokenGetV1 } from './msisdn-submit-token-get-v1.ts'
import { msisdnSubmitTokenPost } from './msisdn-submit-token-post.ts'
import { msisdnSubmitTokenPostV1 } from './msisdn-submit-token-post-v1.ts'
import { ping } from './ping.ts'
import { registerAccount } from './register-account.ts'

/** The identity service API, in the order of the specification. */
export const identityEndpoints: readonly Endpoint[] = [
  getIdentityVersions,

  getAccount,
  logOutAccount,
  registerAccount,

  getTerms,
  agreeToTerms,

  ping,

  getPubKey,
  isPubKeyValid,
  isEphemeralPubKeyValid,

  emailRequestToken,
  emailRequestTokenV1,
  emailSubmitTokenGet,
  emailSubmitTokenPost,
  emailSubmitTokenPostV1,

  msisdnRequestToken,
  msisdnRequestTokenV1,
  msisdnSubmitTokenGet,
  msisdnSubmitTokenGetV1,
  msisdnSubmitTokenPost,
  msisdnSubmitTokenPostV1,

  getValidated3pid,
  getValidated3pidV1,
]
