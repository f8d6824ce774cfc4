import type { Endpoint } from '../../http/endpoint.ts'
import { addEmail } from './add-email.ts'
import { approveKeys } from './approve-keys.ts'
import { beginProviderSignIn } from './begin-provider-sign-in.ts'
import { changeOwnPassword } from './change-own-password.ts'
import { changeProfile } from './change-profile.ts'
import { deactivateOwnAccount } from './deactivate-own-account.ts'
import { endSession } from './end-session.ts'
import { finishProviderSignIn } from './finish-provider-sign-in.ts'
import { linkDevice } from './link-device.ts'
import { removeAddress } from './remove-address.ts'
import { resetPassword } from './reset-password.ts'
import { showAccount } from './show-account.ts'
import { showAddress } from './show-address.ts'
import { showDeactivation } from './show-deactivation.ts'
import { showEmail } from './show-email.ts'
import { showKeyApproval } from './show-key-approval.ts'
import { showLink } from './show-link.ts'
import { showPassword } from './show-password.ts'
import { showReset } from './show-reset.ts'
import { showSession } from './show-session.ts'
import { showSignIn } from './show-sign-in.ts'
import { showSignUp } from './show-sign-up.ts'
import { showSignUpStep } from './show-sign-up-step.ts'
import { signIn } from './sign-in.ts'
import { signOut } from './sign-out.ts'
import { submitSignUpStep } from './submit-sign-up-step.ts'

/** Pages for people who have an account, or want one. */
export const accountEndpoints: readonly Endpoint[] = [
  addEmail,
  approveKeys,
  beginProviderSignIn,
  changeOwnPassword,
  changeProfile,
  deactivateOwnAccount,
  endSession,
  finishProviderSignIn,
  linkDevice,
  removeAddress,
  resetPassword,
  showAccount,
  showAddress,
  showDeactivation,
  showEmail,
  showKeyApproval,
  showLink,
  showPassword,
  showReset,
  showSession,
  showSignIn,
  showSignUpStep,
  showSignUp,
  signIn,
  signOut,
  submitSignUpStep,
]
