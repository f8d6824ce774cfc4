import type { Endpoint } from '../../http/endpoint.ts'
import { confirmContact } from './confirm-contact.ts'
import { getRegistrationPolicy } from './get-registration-policy.ts'
import { getWelcomePage } from './get-welcome-page.ts'
import { openContactLink } from './open-contact-link.ts'
import { showFallback } from './show-fallback.ts'
import { showUnsubscribing } from './show-unsubscribing.ts'
import { submitContactToken } from './submit-contact-token.ts'
import { submitFallback } from './submit-fallback.ts'
import { unsubscribe } from './unsubscribe.ts'

/** Pages for people. */
export const webEndpoints: readonly Endpoint[] = [
  getWelcomePage,
  showFallback,
  submitFallback,
  getRegistrationPolicy,
  openContactLink,
  confirmContact,
  submitContactToken,
  showUnsubscribing,
  unsubscribe,
]
