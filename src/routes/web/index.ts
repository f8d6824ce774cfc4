import type { Endpoint } from '../../http/endpoint.ts'
import { confirmContact } from './confirm-contact.ts'
import { getPolicyPage } from './get-policy-page.ts'
import { getWelcomePage } from './get-welcome-page.ts'
import { openContactLink } from './open-contact-link.ts'
import { submitContactToken } from './submit-contact-token.ts'

/** Pages for people. */
export const webEndpoints: readonly Endpoint[] = [getWelcomePage, openContactLink, confirmContact, submitContactToken]

/** Those of the identity service. */
export const identityPages: readonly Endpoint[] = [getPolicyPage]
