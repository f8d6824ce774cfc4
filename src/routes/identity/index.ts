import type { Endpoint } from '../../http/endpoint.ts'
import { agreeToTerms } from './account/agree-to-terms.ts'
import { getAccount } from './account/get-account.ts'
import { getPolicyPage } from './account/get-policy-page.ts'
import { getTerms } from './account/get-terms.ts'
import { logOutAccount } from './account/log-out-account.ts'
import { registerAccount } from './account/register-account.ts'
import { bind } from './binding/bind.ts'
import { bindV1 } from './binding/bind-v1.ts'
import { blindlySignStuff } from './binding/blindly-sign-stuff.ts'
import { blindlySignStuffV1 } from './binding/blindly-sign-stuff-v1.ts'
import { storeInvite } from './binding/store-invite.ts'
import { storeInviteV1 } from './binding/store-invite-v1.ts'
import { unbind } from './binding/unbind.ts'
import { unbindV1 } from './binding/unbind-v1.ts'
import { getHashDetails } from './lookup/get-hash-details.ts'
import { lookupUserV1 } from './lookup/lookup-user-v1.ts'
import { lookupUsers } from './lookup/lookup-users.ts'
import { lookupUsersV1 } from './lookup/lookup-users-v1.ts'
import { getIdentityVersions } from './server/get-identity-versions.ts'
import { getIdentityWelcomePage } from './server/get-identity-welcome-page.ts'
import { getPubKey } from './server/get-pub-key.ts'
import { isEphemeralPubKeyValid } from './server/is-ephemeral-pub-key-valid.ts'
import { isPubKeyValid } from './server/is-pub-key-valid.ts'
import { ping } from './server/ping.ts'
import { emailRequestToken } from './validation/email-request-token.ts'
import { emailRequestTokenV1 } from './validation/email-request-token-v1.ts'
import { emailSubmitTokenGet } from './validation/email-submit-token-get.ts'
import { emailSubmitTokenPost } from './validation/email-submit-token-post.ts'
import { emailSubmitTokenPostV1 } from './validation/email-submit-token-post-v1.ts'
import { getValidated3pid } from './validation/get-validated3pid.ts'
import { getValidated3pidV1 } from './validation/get-validated3pid-v1.ts'
import { msisdnRequestToken } from './validation/msisdn-request-token.ts'
import { msisdnRequestTokenV1 } from './validation/msisdn-request-token-v1.ts'
import { msisdnSubmitTokenGet } from './validation/msisdn-submit-token-get.ts'
import { msisdnSubmitTokenGetV1 } from './validation/msisdn-submit-token-get-v1.ts'
import { msisdnSubmitTokenPost } from './validation/msisdn-submit-token-post.ts'
import { msisdnSubmitTokenPostV1 } from './validation/msisdn-submit-token-post-v1.ts'

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

  getHashDetails,
  lookupUsers,
  lookupUserV1,
  lookupUsersV1,

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
  bind,
  bindV1,
  unbind,
  unbindV1,

  storeInvite,
  storeInviteV1,

  blindlySignStuff,
  blindlySignStuffV1,
]

/** Pages for people. */
export const identityPages: readonly Endpoint[] = [getPolicyPage]

/** The page at `/` of a server without the homeserver's roles. */
export const identityWelcome: readonly Endpoint[] = [getIdentityWelcomePage]
