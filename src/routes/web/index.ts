import type { Endpoint } from '../../http/endpoint.ts'
import { getPolicyPage } from './get-policy-page.ts'
import { getWelcomePage } from './get-welcome-page.ts'

/** Pages for people. */
export const webEndpoints: readonly Endpoint[] = [getWelcomePage]

/** Those of the identity service. */
export const identityPages: readonly Endpoint[] = [getPolicyPage]
