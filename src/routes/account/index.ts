import type { Endpoint } from '../../http/endpoint.ts'
import { addEmail } from './addresses/add-email.ts'
import { addPhone } from './addresses/add-phone.ts'
import { removeAddress } from './addresses/remove-address.ts'
import { resetPassword } from './addresses/reset-password.ts'
import { showAddress } from './addresses/show-address.ts'
import { showEmail } from './addresses/show-email.ts'
import { showPhone } from './addresses/show-phone.ts'
import { showReset } from './addresses/show-reset.ts'
import { approveKeys } from './approve-keys.ts'
import { beginProviderSignIn } from './begin-provider-sign-in.ts'
import { changeOwnPassword } from './change-own-password.ts'
import { changePicture } from './change-picture.ts'
import { changeProfile } from './change-profile.ts'
import { continueLogin } from './continue-login.ts'
import { showData } from './data/show-data.ts'
import { useData } from './data/use-data.ts'
import { deactivateOwnAccount } from './deactivate-own-account.ts'
import { endSession } from './end-session.ts'
import { finishProviderSignIn } from './finish-provider-sign-in.ts'
import { linkDevice } from './link-device.ts'
import { removePicture } from './remove-picture.ts'
import { showAccount } from './show-account.ts'
import { showDeactivation } from './show-deactivation.ts'
import { showKeyApproval } from './show-key-approval.ts'
import { showLink } from './show-link.ts'
import { showPassword } from './show-password.ts'
import { showPicture } from './show-picture.ts'
import { showSession } from './show-session.ts'
import { showSignIn } from './show-sign-in.ts'
import { signIn } from './sign-in.ts'
import { signInByToken } from './sign-in-by-token.ts'
import { signOut } from './sign-out.ts'
import { showSignUp } from './sign-up/show-sign-up.ts'
import { showSignUpStep } from './sign-up/show-sign-up-step.ts'
import { submitSignUpStep } from './sign-up/submit-sign-up-step.ts'

/** Pages for people who have an account, or want one. */
export const accountEndpoints: readonly Endpoint[] = [
  addEmail,
  addPhone,
  showPhone,
  removeAddress,
  resetPassword,
  showAddress,
  showEmail,
  showReset,
  approveKeys,
  beginProviderSignIn,
  changeOwnPassword,
  changePicture,
  removePicture,
  showPicture,
  changeProfile,
  continueLogin,
  showData,
  useData,
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
  signInByToken,
  signOut,
  showSignUpStep,
  showSignUp,
  submitSignUpStep,
]
