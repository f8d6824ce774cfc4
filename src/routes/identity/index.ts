import type { Endpoint } from '../../http/endpoint.ts'
import { agreeToTerms } from './agree-to-terms.ts'
import { bind } from './bind.ts'
import { bindV1 } from './bind-v1.ts'
import { blindlySignStuff } from './blindly-sign-stuff.ts'
import { blindlySignStuffV1 } from './blindly-sign-stuff-v1.ts'
import { emailRequestToken } from './email-request-token.ts'
import { emailRequestTokenV1 } from './email-request-token-v1.ts'
import { emailSubmitTokenGet } from './email-submit-token-get.ts'
import { emailSubmitTokenPost } from './email-submit-token-post.ts'
import { emailSubmitTokenPostV1 } from './email-submit-token-post-v1.ts'
import { getAccount } from './get-account.ts'
import { getHashDetails } from './get-hash-details.ts'
import { getIdentityVersions } from './get-identity-versions.ts'
import { getIdentityWelcomePage } from './get-identity-welcome-page.ts'
import { getPolicyPage } from './get-policy-page.ts'
import { getPubKey } from './get-pub-key.ts'
import { getTerms } from './get-terms.ts'
import { getValidated3pid } from './get-validated3pid.ts'
import { getValidated3pidV1 } from './get-validated3pid-v1.ts'
import { isEphemeralPubKeyValid } from './is-ephemeral-pub-key-valid.ts'
import { isPubKeyValid } from './is-pub-key-valid.ts'
import { logOutAccount } from './log-out-account.ts'
import { lookupUserV1 } from './lookup-user-v1.ts'
import { lookupUsers } from './lookup-users.ts'
import { lookupUsersV1 } from './lookup-users-v1.ts'
import { msisdnRequestToken } from './msisdn-request-token.ts'
import { msisdnRequestTokenV1 } from './msisdn-request-token-v1.ts'
import { msisdnSubmitTokenGet } from './msisdn-submit-token-get.ts'
import { msisdnSubmitTokenGetV1 } from './msisdn-submit-token-get-v1.ts'
import { msisdnSubmitTokenPost } from './msisdn-submit-token-post.ts'
import { msisdnSubmitTokenPostV1 } from './msisdn-submit-token-post-v1.ts'
import { ping } from './ping.ts'
import { registerAccount } from './register-account.ts'
import { storeInvite } from './store-invite.ts'
import { storeInviteV1 } from './store-invite-v1.ts'
import { unbind } from './unbind.ts'
import { unbindV1 } from './unbind-v1.ts'

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

/** The page at `/`, where no homeserver has one. */
export const identityWelcome: readonly Endpoint[] = [getIdentityWelcomePage]
