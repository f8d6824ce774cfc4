import type { Endpoint } from '../../http/endpoint.ts'
import { getWelcomePage } from './get-welcome-page.ts'

/** Pages for people. */
export const webEndpoints: readonly Endpoint[] = [getWelcomePage]
