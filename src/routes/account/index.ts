import type { Endpoint } from '../../http/endpoint.ts'
import { approveKeys } from './approve-keys.ts'
import { beginProviderSignIn } from './begin-provider-sign-in.ts'
import { changeOwnPassword } from './change-own-password.ts'
import { changeProfile } from './change-profile.ts'
import { deactivateOwnAccount } from './deactivate-own-account.ts'
import { endSession } from './end-session.ts'
import { finishProviderSignIn } from './finish-provider-sign-in.ts'
import { linkDevice } from './link-device.ts'
import { showAccount } from './show-account.ts'
import { showDeactivation } from './show-deactivation.ts'
import { showKeyApproval } from './show-key-approval.ts'
import { showLink } from './show-link.ts'
import { showPassword } from './show-password.ts'
import { showSession } from './show-session.ts'
import { showSignIn } from './show-sign-in.ts'
import { signIn } from './sign-in.ts'
import { signOut } from './sign-out.ts'

/** Pages for people who have an account, or want one. */
export const accountEndpoints: readonly Endpoint[] = [
  approveKeys,
  beginProviderSignIn,
  changeOwnPassword,
  changeProfile,
  deactivateOwnAccount,
  endSession,
  finishProviderSignIn,
  linkDevice,
  showAccount,
  showDeactivation,
  showKeyApproval,
  showLink,
  showPassword,
  showSession,
  showSignIn,
  signIn,
  signOut,
]
