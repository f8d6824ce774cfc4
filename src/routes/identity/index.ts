import type { Endpoint } from '../../http/endpoint.ts'
import { agreeToTerms } from './agree-to-terms.ts'
import { getAccount } from './get-account.ts'
import { getIdentityVersions } from './get-identity-versions.ts'
import { getPubKey } from './get-pub-key.ts'
import { getTerms } from './get-terms.ts'
import { isEphemeralPubKeyValid } from './is-ephemeral-pub-key-valid.ts'
import { isPubKeyValid } from './is-pub-key-valid.ts'
import { logOutAccount } from './log-out-account.ts'
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
]
