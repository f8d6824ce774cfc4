import type { Endpoint } from '../../http/endpoint.ts'
import { beginProviderSignIn } from './begin-provider-sign-in.ts'
import { finishProviderSignIn } from './finish-provider-sign-in.ts'
import { linkDevice } from './link-device.ts'
import { showLink } from './show-link.ts'
import { showSignIn } from './show-sign-in.ts'
import { signIn } from './sign-in.ts'
import { signOut } from './sign-out.ts'

/** Pages for people who have an account, or want one. */
export const accountEndpoints: readonly Endpoint[] = [
  showSignIn,
  signIn,
  signOut,
  showLink,
  linkDevice,
  beginProviderSignIn,
  finishProviderSignIn,
]
